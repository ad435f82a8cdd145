"""What a study needs to know of the command that trains its runs. Nothing here imports torch: --help lists the keys."""

from dataclasses import dataclass

from qrl.agents.evaluation.metric import Metric, columns
from qrl.agents.runs.problems import PROBLEMS, Problem


@dataclass(frozen=True)
class Kind:
    problem: Problem
    seeds: tuple[str, ...]  # settings that are set to the seed of a run
    drawn: str  # what a seed draws of the data
    sizes: tuple[str, ...]  # settings that the number of training samples is proportional to

    # Read from the table of metrics every time, because plugins add to it.

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics in results.csv, by column."""
        return columns(self.problem.metrics)

    @property
    def headline(self) -> dict[str, Metric]:
        """The metrics in the report, by column; families are ranked by the first."""
        return {column: metric for column, metric in self.metrics.items() if metric.headline}

    @property
    def ranking(self) -> str:
        """The column that families are ranked by."""
        return next(iter(self.headline))

    @property
    def higher_is_better(self) -> bool:
        """Of the ranking metric."""
        return bool(self.metrics[self.ranking].higher_is_better)

    def title(self, column: str) -> str:
        return self.metrics[column].title.strip()


KINDS = {
    "train-agent": Kind(
        PROBLEMS["train-agent"],
        seeds=("seed", "collector.seed"),
        drawn="data",
        sizes=("collector.trajectories",),
    ),
    "train-graph": Kind(
        PROBLEMS["train-graph"],
        seeds=("seed", "graph.split_seed"),
        drawn="training pairs",
        sizes=("graph.fraction", "graph.pairs"),
    ),
}
