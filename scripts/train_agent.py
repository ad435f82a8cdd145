"""Train a Q-model offline on a dataset, from settings; stop it at any time and resume it exactly."""

from collections.abc import Sequence

from qrl.agents.runs.settings import TrainSettings
from qrl.common.commands import command
from qrl.scripts._training import training_command


@command
def main(argv: Sequence[str] | None = None) -> int:
    return training_command("train-agent", __doc__, TrainSettings, "qrl.agents.runs.training:AgentTraining", argv)
