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


def tuning_means(study: Study, rows: Sequence[Any]) -> dict[Place, dict[str, float | None]]:
    """The mean of the ranking metric of every configuration on the tuning seeds.

    `rows` are those of the study's table. A configuration of which a tuning run failed or is missing has None.
    """
    scores: dict[Place, dict[str, list[float | None]]] = {
        place: {configuration: [] for configuration in study.settings.families[place.family].configurations}
        for place in places(study)
    }
    for row in rows:
        if row.purpose == "tuning":
            place = place_of(study, row.family, row.condition)
            scores[place][row.choice].append(row.scores.get(study.settings.kind.ranking))
    return {
        place: {configuration: _mean(values) for configuration, values in of_place.items()}
        for place, of_place in scores.items()
    }


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(scores) else None


def select(study: Study, rows: Sequence[Any]) -> dict[Place, str | None]:
    """The configurations with the best mean on the tuning seeds; None where no tuning is complete.

    A single configuration needs no tuning.
    """
    best = max if study.settings.kind.higher_is_better else min
    selected: dict[Place, str | None] = {}
    for place, means in tuning_means(study, rows).items():
        known = {configuration: mean for configuration, mean in means.items() if mean is not None}
        if len(means) == 1:
            selected[place] = next(iter(means))
        else:
            selected[place] = best(known, key=lambda configuration: known[configuration]) if known else None
    return selected


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


def unfinished(study: Study, rows: Sequence[Any]) -> list[Place]:
    """Where tuning runs are still to be done, so that another configuration may yet be selected."""
    missing = (row for row in rows if row.purpose == "tuning" and row.status == "missing")
    return list(dict.fromkeys(place_of(study, row.family, row.condition) for row in missing))


def tuned(study: Study, rows: Sequence[Any]) -> bool:
    """Whether all tuning runs are done, one way or another."""
    return not unfinished(study, rows)
