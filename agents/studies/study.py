"""A study: which training runs it plans, and what it claims. Nothing here imports torch: --help lists the keys."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from agents.settings import TrainSettings, differences
from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name
from qrl.common.settings import Settings, merge, read_config

Metric = Literal["success_rate", "spl", "signed_error", "absolute_error"]

# What the grid decides for every run, and so no setting of a study may.
_DECIDED = ("run", "dataset", "seed", "threads", "collector.seed", "collector.trajectories", "model.name")
_NAME = re.compile(r"[\w.+=-]+")


class Family(Settings):
    """A model with its hyperparameter choices: one line of the figure."""

    model: str | None = Field(None, description="registered name of its model; by default the name of the family")
    settings: dict[str, Any] = Field({}, description="what its runs change in the settings of the study")
    grid: dict[str, list[Any]] = Field({}, description="values to try for each key; its choices are all combinations")

    @property
    def choices(self) -> dict[str, dict[str, Any]]:
        """The settings of each choice by its label; one with an empty label, if there is nothing to choose."""
        combinations = (dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values()))
        return {
            ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in each.items()): each for each in combinations
        }


class Claim(Settings):
    """That some families have more of a metric than others, on the same data.

    Compared are the means over the families; `margin` makes "more" into "at least, up to so much".
    """

    text: str = Field(min_length=1)
    more: list[str] = Field(min_length=1)
    than: list[str] = Field(min_length=1)
    metric: Metric = "success_rate"
    at: list[int] | None = None  # dataset sizes; by default all
    than_at: list[int] | None = None  # sizes of the other side, if they differ
    margin: float = Field(0, ge=0)


class StudySettings(Settings):
    out: str | None = Field(None, description="folder of the results; by default runs/STUDY")
    config: str | None = Field(None, description="config of train-agent that all runs begin with")
    settings: dict[str, Any] = Field({}, description="what all runs change in it, with the keys of train-agent")
    families: dict[str, Family] = Field(
        min_length=1, description="models by name, each with model, settings and a grid of choices"
    )
    trajectories: list[int] = Field(min_length=1, description="sizes of the datasets")
    seeds: list[int] = Field(min_length=1, description="a seed draws a dataset for each size, start values and batches")
    tuning_seeds: list[int] = Field([], description="seeds that choose among the choices of a family, and nothing else")
    claims: list[Claim] = Field(
        [], description="what the report decides: text, more, than, metric, at, than_at, margin"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key in ("trajectories", "seeds", "tuning_seeds"):
            values = getattr(self, key)
            if len(set(values)) < len(values):
                raise ValueError(f"{key}: a value stands twice in {values}")
        both = set(self.seeds) & set(self.tuning_seeds)
        if both:
            raise ValueError(f"seeds and tuning_seeds must differ, but both have {sorted(both)}")
        for name, family in self.families.items():
            self._check_family(name, family)
        for claim in self.claims:
            self._check_claim(claim)
        return self

    def _check_family(self, name: str, family: Family) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"families: the name {name!r} must be of letters, digits and . + - _ =")
        empty = [key for key, values in family.grid.items() if not values]
        if empty:
            raise ValueError(f"families.{name}.grid.{empty[0]}: an empty list leaves no run")
        if len(family.choices) > 1 and not self.tuning_seeds:
            raise ValueError(f"families.{name} has several choices: tuning_seeds must say on which to choose")

    def _check_claim(self, claim: Claim) -> None:
        for name in (*claim.more, *claim.than):
            if name not in self.families:
                raise ValueError(f"claim {claim.text!r}: {unknown_name('family', name, self.families)}")
        for size in (*(claim.at or ()), *(claim.than_at or ())):
            if size not in self.trajectories:
                raise ValueError(f"claim {claim.text!r}: {size} is not among trajectories {self.trajectories}")


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study; its settings are all but the places of its files and its threads."""

    family: str
    choice: str
    trajectories: int
    seed: int
    tuning: bool
    settings: TrainSettings

    @property
    def name(self) -> str:
        """That of its folder."""
        choice = re.sub(r"[^\w.+=,-]", "-", self.choice)
        return "__".join(part for part in (self.family, choice, str(self.trajectories), f"seed{self.seed}") if part)

    @property
    def data_name(self) -> str:
        """That of its dataset, which runs of all families share."""
        return f"{self.trajectories}__seed{self.seed}"


@dataclass(frozen=True)
class Study:
    name: str
    settings: StudySettings

    @classmethod
    def load(cls, config: str, overrides: list[str]) -> "Study":
        """A study from a file or a built-in name; every run that it plans has been checked."""
        study = cls(config.rpartition("/")[2].removesuffix(".yaml"), StudySettings.load(config, overrides))
        assert study.runs
        return study

    @cached_property
    def runs(self) -> list[PlannedRun]:
        """All runs: seed by seed, so that a sweep that stops half way has something of every family."""
        base = {} if self.settings.config is None else read_config(self.settings.config)
        base = merge(base, self._changes("settings", self.settings.settings))
        runs = list(self._plan(base))
        names = [run.name for run in runs]
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise ConfigError(f"study {self.name}: two runs would be called {double}; rename a family")
        return runs

    def _plan(self, base: dict[str, Any]) -> Iterator[PlannedRun]:
        settings = self.settings
        for seed in (*settings.tuning_seeds, *settings.seeds):
            tuning = seed in settings.tuning_seeds
            for size, (name, family) in itertools.product(settings.trajectories, settings.families.items()):
                if tuning and len(family.choices) == 1:
                    continue
                for label, choice in family.choices.items():
                    place = f"families.{name}"
                    values = merge(base, self._changes(f"{place}.settings", family.settings))
                    values = merge(values, self._changes(f"{place}.grid", choice))
                    decided = {"model.name": family.model or name, "seed": seed}
                    decided |= {"collector.seed": seed, "collector.trajectories": size}
                    made = TrainSettings.from_values(merge(values, nest(decided)), f"study {self.name}, {place}")
                    yield PlannedRun(name, label, size, seed, tuning, made)

    def _changes(self, place: str, values: Mapping[str, Any]) -> dict[str, Any]:
        nested = nest(values)
        for key in _DECIDED:
            *parents, last = key.split(".")
            inside: Any = nested
            for parent in parents:
                inside = inside.get(parent, {}) if isinstance(inside, dict) else {}
            if isinstance(inside, dict) and last in inside:
                raise ConfigError(
                    f"study {self.name}, {place}: {key} is decided by the grid of the study, leave it out"
                )
        return nested

    def check_grown_from(self, saved: "Study", place: str) -> None:
        """Refuse to go on with the results of `saved`, unless this study plans all its runs, and maybe more."""
        planned = {run.name: run.settings.model_dump() for run in self.runs}
        for run in saved.runs:
            if run.name not in planned:
                raise ConfigError(
                    f"{place} holds another study: it has the run {run.name}, which this one does not plan; "
                    "name another folder with out=..., or give the same keys again"
                )
            values = run.settings.model_dump()
            changed = differences(values, planned[run.name], values)
            if changed:
                raise ConfigError(
                    f"{place} holds another study: in {run.name}, {'; '.join(changed)}; use another out=..."
                )


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested mappings."""
    nested: dict[str, Any] = {}
    for dotted, value in values.items():
        *parents, last = dotted.split(".")
        below: Any = nest(value) if isinstance(value, Mapping) else value
        for key in (last, *reversed(parents)):
            below = {key: below}
        nested = merge(nested, below)
    return nested
