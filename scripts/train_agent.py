"""Train a Q-model offline on a dataset; stop it at any time and resume it bit-exactly."""

from collections.abc import Sequence

from qrl.common.commands import command


@command
def main(argv: Sequence[str] | None = None) -> int:
    from qrl.agents.runs.problems import PROBLEMS
    from qrl.scripts._training import training_command

    return training_command(PROBLEMS["train-agent"], __doc__, argv)
