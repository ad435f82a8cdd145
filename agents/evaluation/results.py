"""The results of an evaluation as values by metric, and as JSON. Nothing here imports torch: --help lists the keys."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from qrl.agents.evaluation.metric import Value, columns, help_lines
from qrl.agents.evaluation.metrics import METRICS, RESERVED
from qrl.common.json_text import parse_json
from qrl.common.nesting import nest

ProtocolName = Literal["paper", "exhaustive"]
PICTURES = ("distance-map", "estimates", "success")  # each in every format of a figure
VALIDATION_PICTURES = ("hindsight", "lengths")  # of data without a world
REFERENCES = {
    "oracle": "plans with the exact distances",
    "random": "takes uniformly random actions",
    "empirical-graph": "plans by shortest paths over the transitions in the data: memory without generalization",
}

DistanceRow = dict[str, Value]  # of a table by exact distance: low, high, and values by metric


@dataclass(frozen=True)
class Results:
    """How one planner did; `values` has a value per key of `METRICS`, None where it does not exist."""

    name: str
    protocol: ProtocolName | None
    max_steps: int
    seed: int
    values: dict[str, Value]
    success_interval: tuple[float, float] | None = None
    success_by_distance: list[DistanceRow] = field(default_factory=list)
    all_pairs_by_distance: list[DistanceRow] = field(default_factory=list)
    errors_by_distance: list[DistanceRow] = field(default_factory=list)

    @property
    def tables(self) -> dict[str, list[DistanceRow]]:
        """The tables by exact distance, by their keys in the JSON."""
        return {
            "success_by_distance": self.success_by_distance,
            "all_pairs.success_by_distance": self.all_pairs_by_distance,
            "distances.by_distance": self.errors_by_distance,
        }

    def __getitem__(self, key: str) -> Value:
        return self.values[key]

    @property
    def success_rate(self) -> Value:
        return self["success_rate"]

    def scalars(self) -> dict[str, float]:
        """Every value that exists, by its key; those of ranges as key.LOW-HIGH.metric."""
        scalars = dict(self.values)
        for table, rows in self.tables.items():
            for row in rows:
                own = {key: value for key, value in row.items() if key not in ("low", "high")}
                scalars |= {f"{table}.{row['low']}-{row['high']}.{key}": value for key, value in own.items()}
        return {key: float(value) for key, value in scalars.items() if value is not None}

    def as_dict(self) -> dict[str, Any]:
        """Nested by the dots of the keys, as JSON has it."""
        values: dict[str, Any] = {
            "name": self.name,
            "protocol": self.protocol,
            "max_steps": self.max_steps,
            "seed": self.seed,
            **self.values,
            "success_interval": self.success_interval,
            **{key: rows for key, rows in self.tables.items() if rows or key == "success_by_distance"},
        }
        return {key: _group(value) for key, value in nest(values).items()}


@dataclass(frozen=True)
class Evaluation:
    """Results with where they come from, and those of the references beside them; what --json writes."""

    results: Results
    references: list[Results]
    dataset: str
    dataset_hash: str
    notices: list[str]
    run: str | None = None
    model: str | None = None
    learner: str | None = None
    step: int | None = None
    complete: bool | None = None

    def __getitem__(self, key: str) -> Value:
        return self.results[key]

    @property
    def success_rate(self) -> Value:
        return self.results.success_rate

    def to_json(self) -> str:
        origin = {key: value for key, value in vars(self).items() if key not in ("results", "references")}
        references = {results.name: results.as_dict() for results in self.references}
        return json.dumps(_finite(self.results.as_dict() | origin | {"references": references}), indent=2)


def _group(value: Any) -> Any:
    """A group of keys, or None where none of its values exists."""
    if not isinstance(value, dict):
        return value
    groups = {key: _group(inner) for key, inner in value.items()}
    return None if all(inner is None for inner in groups.values()) else groups


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: both become null."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def column_values(values: Mapping[str, Value]) -> dict[str, Value]:
    """What a study records of the values of an evaluation, by column."""
    return {column: values.get(metric.key) for column, metric in columns(METRICS).items()}


def read_values(text: str) -> dict[str, Value]:
    """The metrics in the JSON of an evaluation, by key; raises ValueError for other content."""
    content = parse_json(text)
    if not isinstance(content, dict) or "success_rate" not in content:
        raise ValueError("not the JSON of an evaluation")
    values: dict[str, Value] = {}
    for metric in METRICS:
        value: Any = content
        for key in metric.key.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ValueError(f"{metric.key} is not a number")
        values[metric.key] = value
    return values


def keys_help() -> str:
    """A line per key of the JSON."""
    others = "\n".join(f"  {key:<36} {text}" for key, text in RESERVED.items())
    return f"{help_lines({metric.key: metric for metric in METRICS})}\n{others}"
