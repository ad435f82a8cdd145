"""Fit a model to the distances of a directed graph; stop it at any time and resume it bit-exactly."""

from collections.abc import Sequence

from qrl.common.commands import command


@command
def main(argv: Sequence[str] | None = None) -> int:
    from qrl.agents.runs.problems import PROBLEMS
    from qrl.scripts._training import training_command

    return training_command(PROBLEMS["train-graph"], __doc__, argv)
