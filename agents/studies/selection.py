"""Which hyperparameter configuration of each family is selected in each world, from the runs on the tuning seeds."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qrl.agents.studies.study import PlannedRun, Study


class Place(NamedTuple):
    """What has a configuration of its own: a family in a world, which is empty where the study has a single one."""

    family: str
    world: str


def places(study: Study) -> list[Place]:
    """Every family in every world in which it runs."""
    families, worlds = study.settings.families.items(), study.settings.worlds or [""]
    return [Place(name, world) for name, family in families for world in worlds if family.runs_in(world)]


def select(study: Study, rows: Sequence[Any]) -> dict[Place, str | None]:
    """The configurations with the best mean of the ranking metric; None where no tuning is complete.

    `rows` are those of the study's table. A configuration of which a tuning run failed or is missing is not selected,
    and a single configuration needs no tuning.
    """
    kind = study.settings.kind
    scores: dict[Place, dict[str, list[float | None]]] = {place: {} for place in places(study)}
    for row in rows:
        if row.purpose == "tuning":
            of_place = scores[Place(row.family, row.world)]
            of_place.setdefault(row.choice, []).append(row.scores.get(kind.ranking))
    return {
        place: _best(list(study.settings.families[place.family].configurations), of_place, kind.higher_is_better)
        for place, of_place in scores.items()
    }


def _best(configurations: list[str], scores: Mapping[str, list[float | None]], higher: bool) -> str | None:
    if len(configurations) == 1:
        return configurations[0]
    means = {}
    for configuration in configurations:
        planned = scores.get(configuration, [None])
        known = [score for score in planned if score is not None]
        if len(known) == len(planned):
            means[configuration] = math.fsum(known) / len(known)
    if not means:
        return None
    return (max if higher else min)(means, key=lambda configuration: means[configuration])


def wanted(study: Study, run: PlannedRun, selected: Mapping[Place, str | None]) -> bool:
    """Whether a run is computed: all tuning runs and, if the study says so, only selected configurations on `seeds`."""
    if run.tuning or study.settings.evaluate == "all":
        return True
    return run.configuration == selected[Place(run.family, run.condition.world)]


def expected(study: Study, rows: Sequence[Any]) -> list[PlannedRun]:
    """All runs that a sweep will have computed in the end.

    The first configuration of a family stands for the one that tuning will select.
    """
    standing = or_first(study, select(study, rows))
    return [run for run in study.runs if wanted(study, run, standing)]


def or_first(study: Study, selected: Mapping[Place, str | None]) -> dict[Place, str]:
    """The selected configurations, and the first one where none is selected yet."""
    first = {name: next(iter(family.configurations)) for name, family in study.settings.families.items()}
    return {place: first[place.family] if found is None else found for place, found in selected.items()}


def tuned(study: Study, rows: Sequence[Any]) -> bool:
    """Whether all tuning runs are done, one way or another."""
    return all(row.status != "missing" for row in rows if row.purpose == "tuning")
