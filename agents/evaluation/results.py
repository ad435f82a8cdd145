"""The results of an evaluation, with the meaning of every key. Nothing here imports torch: --help lists them."""

import types
from collections.abc import Iterator
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Protocol = Literal["paper", "exhaustive"]
CAUSES = ("blocked", "loop", "cap", "ended")  # why a task failed
PICTURES = ("distance-map.png", "estimates.png", "success.png")
REFERENCES = {
    "oracle": "the true distances",
    "random": "uniformly random actions",
    "empirical-graph": "shortest ways over the transitions in the data: memory without generalisation",
}


class Record(BaseModel):
    """Numbers that do not exist (no truth, no failures) are None; in JSON, so are infinite ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Bucket(Record):
    low: int = Field(description="least true distance")
    high: int = Field(description="largest true distance")
    tasks: int = Field(description="number of tasks")
    success_rate: float = Field(description="share of them that reached the goal")


class Planning(Record):
    success_rate: float | None = Field(None, description="share of tasks that reached the goal")
    success_interval: tuple[float, float] | None = Field(
        None, description="95 % Wilson interval of it, where tasks are a sample"
    )
    spl: float | None = Field(None, description="success weighted by true distance / steps taken, mean over tasks")
    excess_steps: float | None = Field(None, description="steps beyond the true distance, mean over successes")
    tasks: int = Field(0, description="number of tasks; in a layout all have goals that can be reached")
    failures: dict[str, int] = Field(
        {},
        description="number of failed tasks by cause: blocked (by a wall or door), loop, cap (on the way when the "
        "steps ran out), ended (by the world)",
    )
    success_by_distance: list[Bucket] = Field([], description="success by the true distance of the task")


class Errors(Record):
    """Learned against true steps to the goal, in steps."""

    pairs: int = Field(description="number of (state, action, goal)")
    known: float | None = Field(None, description="share of them with a finite estimate; errors are means over these")
    signed_error: float | None = Field(None, description="estimate - truth")
    absolute_error: float | None = Field(None, description="|estimate - truth|")
    spearman: float | None = Field(
        None, description="rank correlation of estimate and truth; infinite estimates count as the largest"
    )
    underestimated: float | None = Field(None, description="share estimated more than 1 below the truth")


class BucketErrors(Errors):
    low: int = Field(description="least true number of steps")
    high: int = Field(description="largest true number of steps")


class Unreachable(Record):
    pairs: int = Field(description="number of (state, action, goal) without a way")
    mean_estimate: float | None = Field(None, description="mean estimate of their steps, which should be large")
    beyond: float | None = Field(None, description="share estimated longer than every true distance")


class Distances(Record):
    reachable: Errors = Field(description="goals that can be reached after the action")
    unreachable: Unreachable = Field(description="goals that cannot")
    seen: Errors = Field(description="reachable, and the data has a trajectory with the action and later the goal")
    unseen: Errors = Field(description="reachable, without such a trajectory")
    by_distance: list[BucketErrors] = Field(description="reachable, by the true number of steps")


class Axioms(Record):
    triangle_violations: float = Field(description="share of triples with d(x,z) > d(x,y) + d(y,z) + 0.001")
    triangle_excess: float | None = Field(description="the largest d(x,z) - d(x,y) - d(y,z), at least 0")
    identity_error: float | None = Field(description="mean |d(x,x)|; for goals that are states, mean |d((s,a),s')|")
    asymmetry: float | None = Field(
        description="mean |d(s,g) - d(g,s)| by the best actions; in a layout, of states that reach each other"
    )
    true_asymmetry: float | None = Field(None, description="the same of the true distances")


class Results(Planning):
    """How one planner did: planning on top, then its distances."""

    name: str = Field(description="what was evaluated")
    protocol: Protocol | None = Field(None, description="paper (sampled tasks, stepped) or exhaustive (all tasks)")
    max_steps: int = Field(description="steps allowed for a task")
    seed: int = Field(description="of sampled tasks, ties and random actions")
    unreachable_tasks: int | None = Field(None, description="start-goal pairs left out: there is no way")
    all_pairs: Planning | None = Field(
        None, description="exhaustive: the same from every state to every other with a way"
    )
    distances: Distances | None = Field(None, description="errors of the steps to the goal, where the truth is known")
    axioms: Axioms | None = Field(None, description="how far the learned distance is a quasimetric")

    def scalars(self) -> dict[str, float]:
        """Every number that stands alone, by its key."""
        return {key: float(value) for key, value in _numbers(self.model_dump())}


class Evaluation(Results):
    """What `evaluate-planning --json` writes."""

    run: str | None = Field(None, description="folder of the training run")
    model: str | None = Field(None, description="registered name of the model")
    step: int | None = Field(None, description="training step of the checkpoint")
    complete: bool | None = Field(None, description="whether the run was trained to its end")
    dataset: str | None = Field(None, description="the dataset, in words")
    dataset_hash: str | None = Field(None, description="its content hash")
    notices: list[str] = Field([], description="what a reader of the numbers should know")
    references: dict[str, Results] = Field({}, description="all these keys for oracle, random and empirical-graph")


def _numbers(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            for bucket in value:
                name = f"{prefix}{key}.{bucket.pop('low')}-{bucket.pop('high')}."
                yield from _numbers(bucket, name)
        elif isinstance(value, (int, float)) and key not in {"seed", "max_steps"}:
            yield prefix + key, value


def keys_help() -> str:
    """A line for each key of `Evaluation`, with its meaning; a group of keys that comes again is not repeated."""
    lines: list[str] = []
    explained: dict[tuple[str, str | None], str] = {}

    def add(record: type[Record], prefix: str) -> None:
        for name, field in record.model_fields.items():
            if (name, field.description) in explained:
                continue
            explained[name, field.description] = prefix + name
            below = _record_in(field.annotation)
            again = (
                [explained.get((key, inner.description)) for key, inner in below.model_fields.items()] if below else []
            )
            known = next((place for place in again if place and "." in place), None)
            like = f", with the keys of {known.rpartition('.')[0]}" if known else ""
            lines.append(f"  {prefix + name:<34} {field.description}{like}")
            if below is not None:
                add(below, f"{prefix}{name}.")

    add(Evaluation, "")
    return "\n".join(lines)


def _record_in(annotation: Any) -> type[Record] | None:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, Record) else None
    return next((found for part in get_args(annotation) if (found := _record_in(part))), None)
