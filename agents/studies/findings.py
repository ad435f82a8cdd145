"""The findings of a study: selected hyperparameters, means with intervals, comparisons and claims."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.studies.selection import or_first, place_of, select, unfinished
from qrl.agents.studies.settings import Claim, Condition
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
from qrl.agents.studies.study import Study
from qrl.agents.studies.table import RunRow

FOCUS_FAMILY = "iqe-maxmean"  # whose improvement over every other family is reported
Verdict = Literal["holds", "does not hold", "undecided", "no data"]


@dataclass(frozen=True)
class GroupSummary:
    """One configuration of a family, or a reference, under one condition; means are over complete runs."""

    family: str
    configuration: str
    selected: bool  # the family's configuration with the best mean on the tuning seeds
    condition: Condition
    planned: int
    complete: int
    failed: int
    means: dict[str, float]  # of every metric, of the seconds and of the training loss
    interval: Interval | None  # of the ranking metric's mean
    iqm: float | None


@dataclass(frozen=True)
class Comparison:
    """The probability that a run of `FOCUS_FAMILY` beats one of the family; None where either lacks results."""

    family: str
    probability: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Decision:
    """The outcome of a claim: the families compared, their means, and the interval of the difference."""

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
    """Rows by family, configuration and condition; tuning runs count only towards the selection of configurations."""

    def __init__(self, study: Study, rows: Sequence[RunRow]) -> None:
        self.study = study
        self.rows = rows
        self.kind = study.settings.kind
        self.conditions = study.settings.conditions
        self._index: dict[tuple[str, str, Condition, str], list[RunRow]] = {}
        for row in rows:
            self._index.setdefault((row.family, row.choice, row.condition, row.purpose), []).append(row)
        chosen = select(study, rows)
        # Where no configuration of a family has all its tuning runs, the first one is shown, and no claim rests on it.
        self.untuned = [place for place, configuration in chosen.items() if configuration is None]
        self.provisional = [place for place in unfinished(study, rows) if place not in self.untuned]
        self.selected = or_first(study, chosen)

    @property
    def references(self) -> list[str]:
        return [name for name in REFERENCES if any(row.family == name for row in self.rows)]

    def _group(
        self, family: str, configuration: str, condition: Condition, purpose: str = "evaluation"
    ) -> list[RunRow]:
        return self._index.get((family, configuration, condition, purpose), [])

    # Means

    def summaries(self) -> list[GroupSummary]:
        """Of every configuration of every family, and of the references, under every condition."""
        families = self.study.settings.families
        learned = [
            self._summary(name, configuration, condition, "evaluation")
            for name, family in families.items()
            for configuration in family.configurations
            for condition in self.conditions
            if family.runs_in(condition.world)
        ]
        references = product(self.references, self.conditions)
        return learned + [self._summary(name, "", condition, "reference") for name, condition in references]

    def _summary(self, family: str, configuration: str, condition: Condition, purpose: str) -> GroupSummary:
        rows = self._group(family, configuration, condition, purpose)
        complete = [row for row in rows if row.status == "complete"]
        ranked = _values(complete, self.kind.ranking)
        metrics = dict.fromkeys(name for row in complete for name in row.scores)
        columns = {name: _values(complete, name) for name in metrics}
        for name in ("seconds", "loss"):
            columns[name] = np.array([value for row in complete if (value := getattr(row, name)) is not None])
        return GroupSummary(
            family=family,
            configuration=configuration,
            selected=configuration == self.selected.get(place_of(self.study, family, condition)),
            condition=condition,
            planned=len(rows),
            complete=len(complete),
            failed=sum(row.status == "failed" for row in rows),
            means={name: float(values.mean()) for name, values in columns.items() if len(values)},
            interval=bootstrap([ranked]) if len(ranked) else None,
            iqm=over_strata([ranked], iqm) if len(ranked) else None,
        )

    # Comparisons

    def comparisons(self) -> list[Comparison]:
        """`FOCUS_FAMILY` against every other family, over all conditions of both."""
        families = self.study.settings.families
        if FOCUS_FAMILY not in families:
            return []
        comparisons = []
        for family in families:
            if family == FOCUS_FAMILY:
                continue
            both = (families[FOCUS_FAMILY], families[family])
            shared = [condition for condition in self.conditions if all(one.runs_in(condition.world) for one in both)]
            focus, other = self._strata(FOCUS_FAMILY, shared), self._strata(family, shared)
            if shared and all(len(values) for values in (*focus, *other)):
                probability, interval = improvement(focus, other), bootstrap_improvement(focus, other)
                comparisons.append(Comparison(family, probability, interval))
            else:
                comparisons.append(Comparison(family, None, None))
        return comparisons

    def _strata(self, family: str, conditions: Sequence[Condition]) -> list[Values]:
        """The ranking metric of the family's runs per condition, with a sign such that higher is better."""
        sign = 1 if self.kind.higher_is_better else -1
        groups = (self._selected_group(family, condition) for condition in conditions)
        return [sign * _values(rows, self.kind.ranking) for rows in groups]

    def _selected_group(self, family: str, condition: Condition) -> list[RunRow]:
        """The runs of the configuration that is selected there; none where the family does not run or is not tuned."""
        place = place_of(self.study, family, condition)
        configuration = None if place in self.untuned else self.selected.get(place)
        return [] if configuration is None else self._group(family, configuration, condition)

    def decisions(self) -> list[Decision]:
        return [self._decide(claim) for claim in self.study.settings.claims]

    def _decide(self, claim: Claim) -> Decision:
        if not claim.each:
            return self._compare(claim, claim.more, claim.than)
        parts = [self._compare(claim, [one], [other]) for one, other in product(claim.more, claim.than)]
        verdicts = {part.verdict for part in parts}
        # The claim is as strong as its weakest part, which is shown.
        order: tuple[Verdict, ...] = ("no data", "does not hold", "undecided", "holds")
        verdict = next(outcome for outcome in order if outcome in verdicts)
        weakest = [part for part in parts if part.verdict == verdict]
        return min(weakest, key=lambda part: part.difference if part.difference is not None else math.inf)

    def _compare(self, claim: Claim, more: list[str], than: list[str]) -> Decision:
        settings = self.study.settings
        metric, at = claim.metric or self.kind.ranking, claim.at or settings.values
        worlds = claim.worlds or list(settings.worlds) or [""]
        left_conditions, right_conditions = (
            [Condition(world, value) for value, world in product(values, names)]
            for values, names in ((at, worlds), (claim.than_at or at, claim.than_worlds or worlds))
        )
        pairs = [
            (self._by_seed(more, one, metric), self._by_seed(than, other, metric))
            for one, other in zip(left_conditions, right_conditions, strict=True)
        ]
        # Only seeds that all families have finished under all conditions, so that both sides see the same data.
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

    def _by_seed(self, families: Sequence[str], condition: Condition, metric: str) -> dict[int, float]:
        """The mean over the families per seed that all of them have finished."""
        scores = [
            {row.seed: row.scores.get(metric) for row in self._selected_group(family, condition)} for family in families
        ]
        by_seed = {seed: [of_family.get(seed) for of_family in scores] for seed in scores[0]}
        return {
            seed: sum(known) / len(known)
            for seed, values in by_seed.items()
            if len(known := [value for value in values if value is not None]) == len(families)
        }


def _values(rows: Sequence[RunRow], metric: str) -> Values:
    values = (row.scores.get(metric) for row in rows if row.status == "complete")
    return np.array([value for value in values if value is not None], np.float64)
