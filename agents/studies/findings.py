"""What the rows of a study say: the chosen hyperparameters, means with intervals, comparisons and claims."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from agents.results import REFERENCES
from agents.studies.statistics import (
    Interval,
    Values,
    bootstrap,
    bootstrap_improvement,
    improvement,
    iqm,
    over_strata,
)
from agents.studies.study import Claim, Place, Study
from agents.studies.table import Row

SUBJECT = "iqe-maxmean"  # whose improvement over every other family is reported
Verdict = Literal["holds", "does not hold", "undecided", "no data"]


@dataclass(frozen=True)
class Cell:
    """One choice of a family, or a reference, in one place; means are over the runs that are complete."""

    family: str
    choice: str
    chosen: bool
    place: Place
    planned: int
    complete: int
    failed: int
    means: dict[str, float]  # of every metric, and of the seconds
    interval: Interval | None  # of the first metric's mean
    iqm: float | None


@dataclass(frozen=True)
class Comparison:
    """The probability that a run of `SUBJECT` beats one of the family."""

    family: str
    probability: float
    interval: Interval | None


@dataclass(frozen=True)
class Decision:
    claim: Claim
    more: float | None
    than: float | None
    difference: float | None
    interval: Interval | None
    verdict: Verdict


class Findings:
    """Rows by family, choice and place; only runs of evaluation seeds count, except where choices are chosen."""

    def __init__(self, study: Study, rows: Sequence[Row]) -> None:
        self.study = study
        self.rows = rows
        self.kind = study.settings.kind
        self.places = study.settings.places
        self._index: dict[tuple[str, str, Place, str], list[Row]] = {}
        for row in rows:
            self._index.setdefault((row.family, row.choice, row.place, row.purpose), []).append(row)
        self.chosen = {name: self._choose(name) for name in study.settings.families}

    @property
    def references(self) -> list[str]:
        return [name for name in REFERENCES if any(row.family == name for row in self.rows)]

    def _choose(self, family: str) -> str:
        """The choice with the best mean on the tuning seeds; one with a run that is not complete comes last."""
        choices = list(self.study.settings.families[family].choices)
        sign = 1 if self.kind.more_is_better else -1
        scores = []
        for choice in choices:
            rows = [row for place in self.places for row in self._select(family, choice, place, "tuning")]
            tuned = [row.numbers.get(self.kind.metric) for row in rows]
            known = [value for value in tuned if value is not None]
            complete = bool(tuned) and len(known) == len(tuned)
            scores.append(sign * sum(known) / len(known) if complete else -math.inf)
        return choices[int(np.argmax(scores))]

    def _select(self, family: str, choice: str, place: Place, purpose: str = "evaluation") -> list[Row]:
        return self._index.get((family, choice, place, purpose), [])

    # Means

    def cells(self) -> list[Cell]:
        """Every choice of every family, and the references, in every place."""
        made = []
        for family, settings in self.study.settings.families.items():
            for choice in settings.choices:
                made += [self._cell(family, choice, place, "evaluation") for place in self.places]
        for name in self.references:
            made += [self._cell(name, "", place, "reference") for place in self.places]
        return made

    def _cell(self, family: str, choice: str, place: Place, purpose: str) -> Cell:
        rows = self._select(family, choice, place, purpose)
        complete = [row for row in rows if row.status == "complete"]
        ranked = _values(complete, self.kind.metric)
        columns = {
            name: _values(complete, name) for name in dict.fromkeys(key for row in complete for key in row.numbers)
        }
        columns["seconds"] = np.array([row.seconds for row in complete if row.seconds is not None])
        return Cell(
            family=family,
            choice=choice,
            chosen=choice == self.chosen.get(family),
            place=place,
            planned=len(rows),
            complete=len(complete),
            failed=sum(row.status == "failed" for row in rows),
            means={name: float(values.mean()) for name, values in columns.items() if len(values)},
            interval=bootstrap([ranked]) if len(ranked) else None,
            iqm=over_strata([ranked], iqm) if len(ranked) else None,
        )

    # Comparisons

    def comparisons(self) -> list[Comparison]:
        """Over all places; families without results in some place are left out."""
        if SUBJECT not in self.chosen:
            return []
        own = self._strata(SUBJECT)
        made = []
        for family in self.chosen:
            other = self._strata(family)
            if family != SUBJECT and all(len(values) for values in (*own, *other)):
                interval = bootstrap_improvement(own, other)
                made.append(Comparison(family, improvement(own, other), interval))
        return made

    def _strata(self, family: str) -> list[Values]:
        """Of each place, the first metric of the family's runs, so that more is better."""
        choice, sign = self.chosen[family], 1 if self.kind.more_is_better else -1
        return [sign * _values(self._select(family, choice, place), self.kind.metric) for place in self.places]

    def decisions(self) -> list[Decision]:
        return [self._decide(claim) for claim in self.study.settings.claims]

    def _decide(self, claim: Claim) -> Decision:
        settings = self.study.settings
        metric, at = claim.metric or self.kind.metric, claim.at or settings.values
        than_at = claim.than_at or at
        # Values of the two sides go together one by one, or else every one with every other.
        together = zip(at, than_at, strict=True) if len(at) == len(than_at) else product(at, than_at)
        pairs = [
            (self._by_seed(claim.more, (world, one), metric), self._by_seed(claim.than, (world, other), metric))
            for (one, other), world in product(together, claim.worlds or settings.worlds or [""])
        ]
        # Only seeds that all families of both sides have finished: both are then means over the same data.
        shared = [sorted(set(one) & set(other)) for one, other in pairs]
        if not all(shared):
            return Decision(claim, None, None, None, None, "no data")
        sides = [
            [np.array([pair[side][seed] for seed in seeds]) for pair, seeds in zip(pairs, shared, strict=True)]
            for side in (0, 1)
        ]
        strata = [one - other for one, other in zip(*sides, strict=True)]
        difference, interval = over_strata(strata), bootstrap(strata)
        verdict: Verdict = "undecided"
        if interval is not None and interval[0] > -claim.margin:
            verdict = "holds"
        elif interval is not None and interval[1] < -claim.margin:
            verdict = "does not hold"
        return Decision(claim, over_strata(sides[0]), over_strata(sides[1]), difference, interval, verdict)

    def _by_seed(self, families: Sequence[str], place: Place, metric: str) -> dict[int, float]:
        """For each seed that all the families have finished, the mean over them."""
        found = [
            {row.seed: row.numbers.get(metric) for row in self._select(family, self.chosen[family], place)}
            for family in families
        ]
        made = {seed: [values.get(seed) for values in found] for seed in found[0]}
        return {
            seed: sum(known) / len(known)
            for seed, values in made.items()
            if len(known := [value for value in values if value is not None]) == len(families)
        }


def _values(rows: Sequence[Row], metric: str) -> Values:
    values = (row.numbers.get(metric) for row in rows if row.status == "complete")
    return np.array([value for value in values if value is not None], np.float64)
