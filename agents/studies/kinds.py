"""What a study can be about: agents or graphs. Nothing here imports torch: --help lists the commands."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from qrl.agents.runs.settings import GraphTrainSettings, RunSettings, TrainSettings

Numbers = dict[str, float | None]


@dataclass(frozen=True)
class Metric:
    title: str
    digits: int = 3


@dataclass(frozen=True)
class Kind:
    """One of the commands that train, and how its runs are scored."""

    settings: type[RunSettings]
    seeds: tuple[str, ...]  # settings that are the seed of a run
    drawn: str  # what a seed draws of the data
    metrics: dict[str, Metric]  # columns of the report; the first is what families are ranked by
    more_is_better: bool  # of the first metric
    module: str  # with the torch part of it: TRAINING, evaluate, read_numbers, references

    @property
    def metric(self) -> str:
        return next(iter(self.metrics))

    def part(self, name: str) -> Any:
        """A function or class of its module, imported only when it is needed."""
        return getattr(import_module(self.module), name)


_AGENTS, _GRAPHS = (
    Kind(
        settings=TrainSettings,
        seeds=("seed", "collector.seed"),
        drawn="data",
        metrics={
            "success_rate": Metric("success"),
            "spl": Metric("SPL"),
            "signed_error": Metric("estimate - truth", 2),
            "absolute_error": Metric("abs. error", 2),
            "triangle_violations": Metric("triangle violations", 4),
        },
        more_is_better=True,
        module="qrl.agents.studies.agent_runs",
    ),
    Kind(
        settings=GraphTrainSettings,
        seeds=("seed", "graph.split_seed"),
        drawn="pairs for training",
        metrics={
            "mse": Metric("MSE", 5),
            "l1_error": Metric("abs. error, with a way", 2),
            "l1_error_clipped": Metric("clipped", 2),
            "no_way_estimate": Metric("estimate, without a way", 1),
            "no_way_estimate_clipped": Metric("clipped", 1),
            "spearman": Metric("rank correlation"),
        },
        more_is_better=False,
        module="qrl.agents.studies.graph_runs",
    ),
)
KINDS = {kind.settings.COMMAND: kind for kind in (_AGENTS, _GRAPHS)}
