"""Fit a model to the distances of a directed graph; stop it at any time and resume it exactly."""

from collections.abc import Sequence

from qrl.agents.runs.settings import GraphTrainSettings
from qrl.common.commands import command
from qrl.scripts._training import training_command


@command
def main(argv: Sequence[str] | None = None) -> int:
    return training_command(
        "train-graph", __doc__, GraphTrainSettings, "qrl.agents.runs.graph_training:GraphTraining", argv
    )
