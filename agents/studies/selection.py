"""Which hyperparameter configurations of the families are selected, from the runs on the tuning seeds."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qrl.agents.studies.settings import Condition
from qrl.agents.studies.study import PlannedRun, Study


class Place(NamedTuple):
    """What has a configuration of its own: a family in a world or, if the study says so, under a condition."""

    family: str
    world: str  # empty where the study has a single one
    value: float | None = None  # of the axis; None if its values share the configuration

    def __str__(self) -> str:
        at = None if self.value is None else f"at {self.value:g}"
        return " ".join(filter(None, (self.family, self.world and f"in {self.world}", at)))


def place_of(study: Study, family: str, condition: Condition) -> Place:
    return Place(family, condition.world, condition.value if study.settings.tune == "condition" else None)


def places(study: Study) -> list[Place]:
    """Of every family, wherever it runs."""
    settings = study.settings
    found = (
        place_of(study, name, condition)
        for name, family in settings.families.items()
        for condition in settings.conditions
        if family.runs_in(condition.world)
    )
    return list(dict.fromkeys(found))


def select(study: Study, rows: Sequence[Any]) -> dict[Place, str | None]:
    """The configurations with the best mean of the ranking metric; None where no tuning is complete.

    `rows` are those of the study's table. A configuration of which a tuning run failed or is missing is not selected,
    and a single configuration needs no tuning.
    """
    kind = study.settings.kind
    scores: dict[Place, dict[str, list[float | None]]] = {place: {} for place in places(study)}
    for row in rows:
        if row.purpose == "tuning":
            of_place = scores[place_of(study, row.family, row.condition)]
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
    return run.configuration == selected[place_of(study, run.family, run.condition)]


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
