"""A study: which training runs it plans, and what it claims. Nothing here imports torch: --help lists the keys."""

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.runs.settings import RunSettings, differences
from qrl.agents.studies.kinds import KINDS, Kind
from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name
from qrl.common.settings import Settings, merge, read_config

Place = tuple[str, float]  # a world and a value of the axis

_NAME = re.compile(r"[\w.+=-]+")


def _flat(values: Any, prefix: str = "") -> Any:
    """Nested mappings as dotted keys, as key=value overrides need it: what comes later counts."""
    if not isinstance(values, Mapping):
        return values
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


Lists = Annotated[dict[str, list[Any]], BeforeValidator(_flat)]
Axis = Annotated[dict[str, list[int | float]], BeforeValidator(_flat)]


class Family(Settings):
    """A model with its hyperparameter choices: one line of the figure."""

    model: str | None = Field(None, description="registered name of its model; by default the name of the family")
    settings: dict[str, Any] = Field({}, description="what its runs change in the settings of the study")
    grid: Lists = Field({}, description="values to try for each key; its choices are all combinations")

    @property
    def choices(self) -> dict[str, dict[str, Any]]:
        """The settings of each choice by its label; one with an empty label, if there is nothing to choose."""
        combinations = (dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values()))
        return {
            ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in each.items()): each for each in combinations
        }


class Claim(Settings):
    """That some families have more of a metric than others, on the same data.

    Compared are the means over the families, or `each` family of one side with each of the other; `margin` makes "more"
    into "at least, up to so much".
    """

    text: str = Field(min_length=1)
    more: list[str] = Field(min_length=1)
    than: list[str] = Field(min_length=1)
    metric: str | None = None  # by default what families are ranked by
    worlds: list[str] | None = None  # by default all
    at: list[float] | None = None  # values of the axis; by default all
    than_at: list[float] | None = None  # those of the other side, if they differ
    margin: float = Field(0, ge=0)
    each: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.than_at is not None and len(self.than_at) != len(self.at or []):
            raise ValueError("at and than_at must have as many values, because they are compared one by one")
        return self


class StudySettings(Settings):
    CONFIGS = "studies"

    name: str | None = Field(None, description="what it is called; by default as its file")
    out: str | None = Field(None, description="folder of the results; by default runs/STUDY")
    command: Literal["train-agent", "train-graph"] = Field("train-agent", description="what trains the runs")
    config: str | None = Field(None, description="config of that command that all runs begin with")
    settings: dict[str, Any] = Field({}, description="what all runs change in it, with the keys of the command")
    families: dict[str, Family] = Field(
        min_length=1, description="models by name, each with model, settings and a grid of choices"
    )
    axis: Axis = Field(
        description="one key and its values, such as collector.trajectories: [100, 1000]; the axis of the figure"
    )
    worlds: dict[str, dict[str, Any]] = Field({}, description="settings by name: each is a panel of the figure")
    seeds: list[int] = Field(min_length=1, description="a seed draws data, start values and batches")
    tuning_seeds: list[int] = Field([], description="seeds that choose among the choices of a family, and nothing else")
    claims: list[Claim] = Field(
        [], description="what the report decides: text, more, than, metric, worlds, at, than_at, margin, each"
    )

    @property
    def kind(self) -> Kind:
        return KINDS[self.command]

    @property
    def axis_key(self) -> str:
        return next(iter(self.axis))

    @property
    def axis_name(self) -> str:
        return self.axis_key.rpartition(".")[2]

    @property
    def values(self) -> list[int | float]:
        return self.axis[self.axis_key]

    @property
    def places(self) -> list[Place]:
        """Every world with every value of the axis."""
        return list(itertools.product(self.worlds or [""], self.values))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.axis) != 1 or not self.values:
            raise ValueError("axis: must be one key with a list of values")
        for key, values in (("axis", self.values), ("seeds", self.seeds), ("tuning_seeds", self.tuning_seeds)):
            if len(set(values)) < len(values):
                raise ValueError(f"{key}: a value stands twice in {values}")
        for name in self.worlds:
            _check_name("worlds", name)
        both = set(self.seeds) & set(self.tuning_seeds)
        if both:
            raise ValueError(f"seeds and tuning_seeds must differ, but both have {sorted(both)}")
        for name, family in self.families.items():
            self._check_family(name, family)
        for claim in self.claims:
            self._check_claim(claim)
        return self

    def _check_family(self, name: str, family: Family) -> None:
        _check_name("families", name)
        if name in REFERENCES:
            raise ValueError(f"families: {name!r} is the name of a reference; choose another")
        empty = [key for key, values in family.grid.items() if not values]
        if empty:
            raise ValueError(f"families.{name}.grid.{empty[0]}: an empty list leaves no run")
        if len(family.choices) > 1 and not self.tuning_seeds:
            raise ValueError(f"families.{name} has several choices: tuning_seeds must say on which to choose")

    def _check_claim(self, claim: Claim) -> None:
        for kind, named, known in (
            ("family", [*claim.more, *claim.than], self.families),
            ("metric", [claim.metric or self.kind.metric], self.kind.metrics),
            ("world", claim.worlds or [], self.worlds),
            (self.axis_key, map(_text, [*(claim.at or []), *(claim.than_at or [])]), map(_text, self.values)),
        ):
            choices = list(known)
            for name in named:
                if name not in choices:
                    raise ValueError(f"claim {claim.text!r}: {unknown_name(kind, name, choices)}")


def _check_name(place: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{place}: the name {name!r} must be of letters, digits and . + - _ =")


def _text(value: float) -> str:
    return f"{value:g}"


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study; its settings are all but the places of its files and its threads."""

    family: str
    choice: str
    place: Place
    seed: int
    tuning: bool
    settings: RunSettings

    @property
    def name(self) -> str:
        """That of its folder."""
        choice = re.sub(r"[^\w.+=,-]", "-", self.choice)
        world, value = self.place
        return "__".join(part for part in (self.family, choice, world, _text(value), f"seed{self.seed}") if part)

    @property
    def data_name(self) -> str:
        """That of its dataset, which all runs share whose data is made in the same way."""
        data: Settings = getattr(self.settings, self.settings.DATA)
        digest = hashlib.sha256(data.model_dump_json().encode()).hexdigest()[:12]
        return f"{self.settings.data_name}__{digest}"


@dataclass(frozen=True)
class Study:
    name: str
    settings: StudySettings

    @classmethod
    def load(cls, config: str, overrides: list[str]) -> "Study":
        """A study from a file or a built-in name; every run that it plans has been checked."""
        settings = StudySettings.load(config, overrides)
        study = cls(settings.name or Path(config).stem, settings)
        assert study.runs
        return study

    @cached_property
    def base(self) -> dict[str, Any]:
        """The settings that all runs begin with."""
        named = (
            {}
            if self.settings.config is None
            else read_config(self.settings.config, self.settings.kind.settings.CONFIGS)
        )
        return merge(named, self._changes("settings", self.settings.settings))

    @property
    def resolved(self) -> dict[str, Any]:
        """The study without reference to any other file, for its folder."""
        values = self.settings.model_dump(exclude={"out", "config"}, exclude_defaults=True)
        # A config may have what the grid decides anyway; settings may not.
        return {"name": self.name, **values, "settings": _without(self.base, self._decided)}

    @property
    def _decided(self) -> list[str]:
        """The keys that are decided for every run by the grid itself."""
        return ["run", "dataset", "threads", "model.name", self.settings.axis_key, *self.settings.kind.seeds]

    @cached_property
    def runs(self) -> list[PlannedRun]:
        """All runs: seed by seed, so that a sweep that stops half way has something of every family."""
        runs = list(self._plan())
        name, times = Counter(run.name for run in runs).most_common(1)[0]
        if times > 1:
            raise ConfigError(f"study {self.name}: {times} runs would be called {name}; rename a family or a choice")
        return runs

    def _plan(self) -> Iterator[PlannedRun]:
        settings = self.settings
        for seed, place in itertools.product((*settings.tuning_seeds, *settings.seeds), settings.places):
            world, value = place
            there = merge(self.base, self._changes(f"worlds.{world}", settings.worlds.get(world, {})))
            for name, family in settings.families.items():
                tuning = seed in settings.tuning_seeds
                if tuning and len(family.choices) == 1:
                    continue
                own = merge(there, self._changes(f"families.{name}.settings", family.settings))
                for label, choice in family.choices.items():
                    values = merge(own, self._changes(f"families.{name}.grid", choice))
                    decided = {"model.name": family.model or name, settings.axis_key: value}
                    values = merge(values, nest(decided | dict.fromkeys(settings.kind.seeds, seed)))
                    made = settings.kind.settings.from_values(values, f"study {self.name}, families.{name}")
                    yield PlannedRun(name, label, place, seed, tuning, made)

    def _changes(self, place: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Nested settings, if none of them is decided for every run by the grid itself."""
        nested = nest(values)
        for key in self._decided:
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


def _without(values: Mapping[str, Any], keys: Collection[str], prefix: str = "") -> dict[str, Any]:
    """Nested mappings without some dotted keys."""
    return {
        key: _without(value, keys, f"{prefix}{key}.") if isinstance(value, Mapping) else value
        for key, value in values.items()
        if f"{prefix}{key}" not in keys
    }


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
