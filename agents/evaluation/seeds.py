"""Runs that differ only by seed, taken together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qrl.agents.evaluation.metric import Metric
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.results import Results
from qrl.agents.evaluation.tables import show_number
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.runs.settings import DATA_GROUPS, REPLACEABLE

_FREE = {"seed", "run", "device", "threads", "compile", *REPLACEABLE, *DATA_GROUPS}


@dataclass(frozen=True)
class SeedGroup:
    """name: what the settings of the group have in common; members: indices of the agents, by seed."""

    name: str
    members: list[int]


def seed_groups(agents: Sequence[TrainedAgent]) -> list[SeedGroup]:
    """The agents by their settings but for the seed, in order; each is in one group, possibly alone."""
    groups: dict[str, list[int]] = {}
    for index, trained in enumerate(agents):
        settings: dict[str, Any] = trained.run.settings.model_dump(mode="json", exclude=_FREE)
        groups.setdefault(repr((settings, trained.checkpoint.step)), []).append(index)
    return [SeedGroup(_name([agents[index] for index in members]), members) for members in groups.values()]


def _name(agents: Sequence[TrainedAgent]) -> str:
    if len(agents) == 1:
        return agents[0].name
    model, learner = agents[0].checkpoint.model_name, agents[0].run.settings.learner.name
    return f"{model} by {learner} ({len(agents)} seeds: {', '.join(trained.name for trained in agents)})"


def seed_rows(groups: Sequence[SeedGroup], results: Sequence[Results]) -> list[tuple[Metric, list[str]]]:
    """The headline metrics with a text per group: the mean over its seeds, and their standard deviation if several."""
    rows = [(metric, [_mean(metric, group, results) for group in groups]) for metric in METRICS if metric.headline]
    return [(metric, values) for metric, values in rows if set(values) != {"-"}]


def _mean(metric: Metric, group: SeedGroup, results: Sequence[Results]) -> str:
    values = [results[member][metric.key] for member in group.members]
    known = [value for value in values if value is not None]
    if len(known) < len(values):  # a mean over some of the seeds would not compare
        return "-"
    mean = show_number(float(np.mean(known)), metric.digits)
    return mean if len(known) == 1 else f"{mean} ± {np.std(known, ddof=1):.{metric.digits}f}"
