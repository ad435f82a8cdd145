"""What the rows of a study say: the chosen hyperparameters, means with intervals, comparisons and claims."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.studies.statistics import (
    Interval,
    Values,
    bootstrap,
    bootstrap_improvement,
    improvement,
    iqm,
    over_strata,
    t_interval,
)
from qrl.agents.studies.study import Claim, Place, Study
from qrl.agents.studies.table import Row

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
    """The probability that a run of `SUBJECT` beats one of the family; None where one of them lacks results."""

    family: str
    probability: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Decision:
    """What became of a claim: the families that were compared, their means, and the interval of the difference."""

    claim: Claim
    more_families: list[str]
    than_families: list[str]
    more: float | None
    than: float | None
    interval: Interval | None
    verdict: Verdict

    @property
    def difference(self) -> float | None:
        return None if self.more is None or self.than is None else self.more - self.than


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
        self.untuned: list[str] = []  # families whose choice could not be made on complete tuning runs
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
        if len(choices) > 1 and max(scores) == -math.inf:
            self.untuned.append(family)
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
        """Over all places."""
        if SUBJECT not in self.chosen:
            return []
        own = self._strata(SUBJECT)
        made = []
        for family in self.chosen:
            other = self._strata(family)
            if family == SUBJECT:
                continue
            if all(len(values) for values in (*own, *other)):
                made.append(Comparison(family, improvement(own, other), bootstrap_improvement(own, other)))
            else:
                made.append(Comparison(family, None, None))
        return made

    def _strata(self, family: str) -> list[Values]:
        """Of each place, the first metric of the family's runs, so that more is better."""
        choice, sign = self.chosen[family], 1 if self.kind.more_is_better else -1
        return [sign * _values(self._select(family, choice, place), self.kind.metric) for place in self.places]

    def decisions(self) -> list[Decision]:
        return [self._decide(claim) for claim in self.study.settings.claims]

    def _decide(self, claim: Claim) -> Decision:
        if not claim.each:
            return self._compare(claim, claim.more, claim.than)
        parts = [self._compare(claim, [one], [other]) for one, other in product(claim.more, claim.than)]
        verdicts = {part.verdict for part in parts}
        # The whole is as good as its weakest part, which is shown.
        verdict = next(each for each in ("no data", "does not hold", "undecided", "holds") if each in verdicts)
        weakest = [part for part in parts if part.verdict == verdict]
        return min(weakest, key=lambda part: part.difference if part.difference is not None else math.inf)

    def _compare(self, claim: Claim, more: list[str], than: list[str]) -> Decision:
        settings = self.study.settings
        metric, at = claim.metric or self.kind.metric, claim.at or settings.values
        pairs = [
            (self._by_seed(more, (world, one), metric), self._by_seed(than, (world, other), metric))
            for one, other in zip(at, claim.than_at or at, strict=True)
            for world in claim.worlds or settings.worlds or [""]
        ]
        # Only seeds that all families have finished in all places: both sides are then means over the same data.
        seeds = sorted(set.intersection(*(set(one) & set(other) for one, other in pairs)))
        if not seeds:
            return Decision(claim, more, than, None, None, None, "no data")
        left, right = (np.array([[pair[side][seed] for pair in pairs] for seed in seeds]).mean(1) for side in (0, 1))
        interval = t_interval(left - right)
        verdict: Verdict = "undecided"
        if interval is not None and interval[0] > -claim.margin:
            verdict = "holds"
        elif interval is not None and interval[1] < -claim.margin:
            verdict = "does not hold"
        return Decision(claim, more, than, float(left.mean()), float(right.mean()), interval, verdict)

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
