"""What the rows of a study say: the chosen hyperparameters, means with intervals, comparisons and claims."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agents.results import REFERENCES, Record
from agents.studies.statistics import (
    Interval,
    Values,
    bootstrap,
    bootstrap_improvement,
    improvement,
    iqm,
    over_strata,
)
from agents.studies.study import Claim, Study
from agents.studies.table import Row

SUBJECT = "iqe-maxmean"  # whose improvement over every other family is reported
Verdict = Literal["holds", "does not hold", "undecided", "no data"]


class Cell(Record):
    """One choice of a family on datasets of one size."""

    family: str
    choice: str
    chosen: bool
    trajectories: int
    planned: int
    complete: int
    failed: int
    success_rate: float | None = None
    success_low: float | None = None
    success_high: float | None = None
    success_iqm: float | None = None
    spl: float | None = None
    signed_error: float | None = None
    absolute_error: float | None = None
    spearman: float | None = None
    triangle_violations: float | None = None
    seconds: float | None = None


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
    """Rows by family, choice and size; only runs of evaluation seeds count, except where choices are chosen."""

    def __init__(self, study: Study, rows: Sequence[Row]) -> None:
        self.study = study
        self.rows = rows
        self.sizes = study.settings.trajectories
        self.chosen = {name: self._choose(name) for name in study.settings.families}

    @property
    def references(self) -> list[str]:
        return [name for name in REFERENCES if any(row.family == name for row in self.rows)]

    def _choose(self, family: str) -> str:
        """The choice with the best mean success on the tuning seeds; what failed counts as no success."""
        choices = list(self.study.settings.families[family].choices)
        scores = []
        for choice in choices:
            tuned = self._select(family, choice, purpose="tuning")
            scores.append(sum(row.success_rate or 0.0 for row in tuned) / max(1, len(tuned)))
        return choices[int(np.argmax(scores))]

    def _select(
        self, family: str, choice: str | None = None, size: int | None = None, purpose: str = "evaluation"
    ) -> list[Row]:
        return [
            row
            for row in self.rows
            if row.family == family
            and row.purpose == purpose
            and (choice is None or row.choice == choice)
            and (size is None or row.trajectories == size)
        ]

    # Means

    def cells(self) -> list[Cell]:
        """Every choice of every family, and the references, at every size."""
        made = []
        for family, settings in self.study.settings.families.items():
            for choice in settings.choices:
                chosen = choice == self.chosen[family]
                made += [self._cell(self._select(family, choice, size), chosen) for size in self.sizes]
        for name in self.references:
            made += [self._cell(self._select(name, "", size, "reference"), chosen=False) for size in self.sizes]
        return made

    def _cell(self, rows: list[Row], chosen: bool) -> Cell:
        complete = [row for row in rows if row.status == "complete"]

        def mean(metric: str) -> float | None:
            values = _values(complete, metric)
            return float(values.mean()) if len(values) else None

        success = _values(complete, "success_rate")
        low, high = (bootstrap([success]) if len(success) else None) or (None, None)
        averaged = (
            "success_rate",
            "spl",
            "signed_error",
            "absolute_error",
            "spearman",
            "triangle_violations",
            "seconds",
        )
        return Cell(
            family=rows[0].family,
            choice=rows[0].choice,
            chosen=chosen,
            trajectories=rows[0].trajectories,
            planned=len(rows),
            complete=len(complete),
            failed=sum(row.status == "failed" for row in rows),
            success_low=low,
            success_high=high,
            success_iqm=over_strata([success], iqm) if len(success) else None,
            **{metric: mean(metric) for metric in averaged},
        )

    # Comparisons

    def comparisons(self) -> list[Comparison]:
        """Over all sizes; families without results at some size are left out."""
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
        choice = self.chosen[family]
        return [_values(self._select(family, choice, size), "success_rate") for size in self.sizes]

    def decisions(self) -> list[Decision]:
        return [self._decide(claim) for claim in self.study.settings.claims]

    def _decide(self, claim: Claim) -> Decision:
        at = claim.at or self.sizes
        than_at = claim.than_at or at
        more = [self._by_seed(claim.more, size, claim.metric) for size in at]
        than = [self._by_seed(claim.than, size, claim.metric) for size in than_at]
        if len(at) == len(than_at):
            pairs = list(zip(more, than, strict=True))
        else:  # every size of one side with every size of the other
            pairs = [(one, other) for one in more for other in than]
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

    def _by_seed(self, families: Sequence[str], size: int, metric: str) -> dict[int, float]:
        """For each seed that all the families have finished, the mean over them."""
        found = [
            {row.seed: getattr(row, metric) for row in self._select(family, self.chosen[family], size)}
            for family in families
        ]
        seeds = [seed for seed in found[0] if all(values.get(seed) is not None for values in found)]
        return {seed: float(np.mean([values[seed] for values in found])) for seed in seeds}


def _values(rows: Sequence[Row], metric: str) -> Values:
    values = (getattr(row, metric) for row in rows if row.status == "complete")
    return np.array([value for value in values if value is not None], np.float64)
