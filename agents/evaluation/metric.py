"""What a metric is: a function with the texts under which it is shown. Nothing here imports torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Value = float | None


@dataclass(frozen=True)
class Metric:
    """`compute` takes the measurements of an evaluation; None where the metric does not exist.

    key: its place in the JSON, dotted. title: its row in tables; without one it is not shown there.
    column: its name in metrics.csv, TensorBoard during training and the columns of a study, if it has one.
    headline: shown in the tables of a study. in_training: computed at every evaluation during training.
    by_distance: shown in the table by exact distance.
    """

    key: str
    title: str
    help: str
    compute: Callable[[Any], Value]
    digits: int = 3
    higher_is_better: bool | None = None
    column: str | None = None
    headline: bool = False
    in_training: bool = False
    by_distance: bool = False

    @property
    def needs_distances(self) -> bool:
        """Whether it does not exist for planners that only score actions."""
        return self.key.startswith(("distances.", "axioms.", "hindsight."))

    @property
    def of_held_out(self) -> bool:
        """Whether it is measured on held-out trajectories, with or without a world."""
        return self.key.startswith(("validation.", "hindsight."))


def columns(metrics: Sequence[Metric]) -> dict[str, Metric]:
    """The metrics that a study records, by the names of their columns."""
    return {metric.column: metric for metric in metrics if metric.column is not None}


def help_lines(names: Mapping[str, Metric]) -> str:
    """A line per metric, for --help."""
    return "\n".join(f"  {name:<36} {metric.help}" for name, metric in names.items())
