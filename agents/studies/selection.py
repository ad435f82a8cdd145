"""Which hyperparameter configuration of each family is selected, from the runs on the tuning seeds."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from qrl.agents.studies.study import PlannedRun, Study


def select(study: Study, rows: Sequence[Any]) -> dict[str, str | None]:
    """By family, the configuration with the best mean of the ranking metric; None where no tuning is complete.

    `rows` are those of the study's table. A configuration of which a tuning run failed or is missing is not selected,
    and a single configuration needs no tuning.
    """
    scores: dict[tuple[str, str], list[float | None]] = {}
    for row in rows:
        if row.purpose == "tuning":
            scores.setdefault((row.family, row.choice), []).append(row.scores.get(study.settings.kind.ranking))
    return {
        name: _best(list(family.configurations), name, scores, study.settings.kind.higher_is_better)
        for name, family in study.settings.families.items()
    }


def _best(
    configurations: list[str], family: str, scores: dict[tuple[str, str], list[float | None]], higher: bool
) -> str | None:
    if len(configurations) == 1:
        return configurations[0]
    means = {}
    for configuration in configurations:
        known = [score for score in scores.get((family, configuration), [None]) if score is not None]
        if len(known) == len(scores.get((family, configuration), [None])):
            means[configuration] = math.fsum(known) / len(known)
    if not means:
        return None
    return (max if higher else min)(means, key=lambda configuration: means[configuration])


def wanted(study: Study, run: PlannedRun, selected: Mapping[str, str | None]) -> bool:
    """Whether a run is computed: all tuning runs and, if the study says so, only selected configurations on `seeds`."""
    return run.tuning or study.settings.evaluate == "all" or run.configuration == selected[run.family]


def expected(study: Study, rows: Sequence[Any]) -> list[PlannedRun]:
    """All runs that a sweep will have computed in the end.

    The first configuration of a family stands for the one that tuning will select.
    """
    selected = select(study, rows)
    standing = {
        name: selected[name] or next(iter(family.configurations)) for name, family in study.settings.families.items()
    }
    return [run for run in study.runs if wanted(study, run, standing)]


def tuned(study: Study, rows: Sequence[Any]) -> bool:
    """Whether all tuning runs are done, one way or another."""
    return all(row.status != "missing" for row in rows if row.purpose == "tuning")
