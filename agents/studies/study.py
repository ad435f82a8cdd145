"""A study: the training runs that it plans, and its claims. Nothing here imports torch: --help lists the keys."""

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.runs.settings import RunSettings, differences
from qrl.agents.studies.kinds import KINDS, Kind
from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name
from qrl.common.nesting import nest
from qrl.common.settings import Settings, merge, read_config

_NAME = re.compile(r"[\w.+=-]+")


class Condition(NamedTuple):
    """A world and a value of the axis; `world` is empty where the study has a single one."""

    world: str
    value: float


def _flat(values: Any, prefix: str = "") -> Any:
    """Nested mappings as dotted keys, so that a key=value override replaces the value of the file."""
    if not isinstance(values, Mapping):
        return values
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


Lists = Annotated[dict[str, list[Any]], BeforeValidator(_flat)]
Axis = Annotated[dict[str, list[int | float]], BeforeValidator(_flat)]


class Family(Settings):
    """A model with its hyperparameter configurations: one line of the figure."""

    model: str | None = Field(None, description="registered name of its model; by default the name of the family")
    settings: dict[str, Any] = Field({}, description="settings of its runs, on top of those of the study")
    grid: Lists = Field({}, description="values to try per key; its configurations are all combinations")

    @property
    def configurations(self) -> dict[str, dict[str, Any]]:
        """The settings of the hyperparameter configurations by label; a single one has an empty label."""
        combinations = (dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values()))
        return {
            ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in settings.items()): settings
            for settings in combinations
        }


class Claim(Settings):
    """The claim that some families have more of a metric than others, on the same data.

    It compares the means over the families or, with `each`, every family of one side with every one of the other. With
    a `margin`, a side may be worse by up to that much.
    """

    text: str = Field(min_length=1)
    more: list[str] = Field(min_length=1)
    than: list[str] = Field(min_length=1)
    metric: str | None = None  # by default the one that families are ranked by
    worlds: list[str] | None = None  # by default all
    at: list[float] | None = None  # values of the axis; by default all
    than_at: list[float] | None = None  # values of the other side, if they differ
    margin: float = Field(0, ge=0)
    each: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.than_at is not None and len(self.than_at) != len(self.at or []):
            raise ValueError("at and than_at must have the same number of values, because they are compared one by one")
        return self


class StudySettings(Settings):
    CONFIGS = "studies"

    name: str | None = Field(None, description="name of the study; by default that of its file")
    out: str | None = Field(None, description="folder of the results; by default runs/STUDY")
    command: Literal["train-agent", "train-graph"] = Field("train-agent", description="command that trains the runs")
    config: str | None = Field(None, description="config of that command, on which all runs are based")
    settings: dict[str, Any] = Field({}, description="settings of all runs on top of it, with the command's keys")
    families: dict[str, Family] = Field(
        min_length=1, description="models by name, each with model, settings and a grid of hyperparameters"
    )
    axis: Axis = Field(
        description="one key and its values, such as collector.trajectories: [100, 1000]; the axis of the figure"
    )
    worlds: dict[str, dict[str, Any]] = Field({}, description="settings by name; one panel of the figure per world")
    seeds: list[int] = Field(min_length=1, description="seeds of data, initial weights and batches")
    tuning_seeds: list[int] = Field(
        [], description="seeds used only to select the hyperparameter configuration of each family"
    )
    tuning_values: list[int | float] | None = Field(
        None, description="values of the axis at which configurations are tuned; by default all"
    )
    evaluate: Literal["all", "selected"] = Field(
        "all", description="configurations that run on the seeds: all, or only the one selected on the tuning seeds"
    )
    claims: list[Claim] = Field(
        [], description="claims that the report tests: text, more, than, metric, worlds, at, than_at, margin, each"
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
    def conditions(self) -> list[Condition]:
        """Every world with every value of the axis."""
        return [Condition(world, value) for world, value in itertools.product(self.worlds or [""], self.values)]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(self.axis) != 1 or not self.values:
            raise ValueError("axis: must be one key with a list of values")
        for key, values in (("axis", self.values), ("seeds", self.seeds), ("tuning_seeds", self.tuning_seeds)):
            if len(set(values)) < len(values):
                raise ValueError(f"{key}: {values} has a value twice")
        for name in self.worlds:
            _check_name("worlds", name)
        unknown = [value for value in self.tuning_values or [] if value not in self.values]
        if unknown or self.tuning_values == []:
            raise ValueError(f"tuning_values: must be some of the values of the axis, {self.values}")
        shared = sorted(set(self.seeds) & set(self.tuning_seeds))
        if shared:
            raise ValueError(f"seeds and tuning_seeds must differ, but both have {shared}")
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
        if len(family.configurations) > 1 and not self.tuning_seeds:
            raise ValueError(
                f"families.{name} has several hyperparameter configurations: add tuning_seeds to select one"
            )

    def _check_claim(self, claim: Claim) -> None:
        for kind, named, known in (
            ("family", [*claim.more, *claim.than], self.families),
            ("metric", [claim.metric or self.kind.ranking], self.kind.metrics),
            ("world", claim.worlds or [], self.worlds),
            (self.axis_key, map(_text, [*(claim.at or []), *(claim.than_at or [])]), map(_text, self.values)),
        ):
            names = list(known)
            for name in named:
                if name not in names:
                    raise ValueError(f"claim {claim.text!r}: {unknown_name(kind, name, names)}")


def _check_name(key: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{key}: the name {name!r} must consist of letters, digits and . + - _ =")


def _text(value: float) -> str:
    return f"{value:g}"


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study; its settings lack only the paths of its files and its threads."""

    family: str
    configuration: str
    condition: Condition
    seed: int
    tuning: bool
    settings: RunSettings

    @property
    def name(self) -> str:
        """The name of its folder."""
        configuration = re.sub(r"[^\w.+=,-]", "-", self.configuration)
        world, value = self.condition
        parts = (self.family, configuration, world, _text(value), f"seed{self.seed}")
        return "__".join(part for part in parts if part)

    @property
    def data_name(self) -> str:
        """The name of its dataset, shared by all runs with the same settings of the data."""
        digest = hashlib.sha256(self.settings.data.model_dump_json().encode()).hexdigest()[:12]
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
        """The settings that all runs are based on."""
        config, folder = self.settings.config, self.settings.kind.problem.settings_type.CONFIGS
        named = {} if config is None else read_config(config, folder)
        return merge(named, self._changes("settings", self.settings.settings))

    @property
    def resolved(self) -> dict[str, Any]:
        """The study without reference to any other file, for its folder."""
        values = self.settings.model_dump(exclude={"out", "config"}, exclude_defaults=True)
        # A config may set what the grid overrides; the study's own settings may not.
        return {"name": self.name, **values, "settings": _without(self.base, self._decided)}

    @property
    def _decided(self) -> list[str]:
        """The keys that the grid sets for every run."""
        return ["run", "dataset", "threads", "model.name", self.settings.axis_key, *self.settings.kind.seeds]

    @cached_property
    def runs(self) -> list[PlannedRun]:
        """All runs, seed by seed, so that a sweep that stops halfway has results of every family."""
        runs = list(self._plan())
        name, times = Counter(run.name for run in runs).most_common(1)[0]
        if times > 1:
            raise ConfigError(f"study {self.name}: {times} runs would be called {name}; rename a family or a world")
        self._check_metrics(runs)
        return runs

    def _check_metrics(self, runs: list[PlannedRun]) -> None:
        """Refuse claims about the distances of families whose learners teach none."""
        kind = self.settings.kind
        learners = {run.family: run.settings.learner for run in runs if run.settings.learner.LEARNS == "scores"}
        for claim in self.settings.claims:
            metric = claim.metric or kind.ranking
            for family in learners.keys() & {*claim.more, *claim.than}:
                if kind.metrics[metric].needs_distances:
                    raise ConfigError(
                        f"study {self.name}, claim {claim.text!r}: the family {family} has no {metric}, because its "
                        f"learner {learners[family].name} teaches scores of actions, not distances; choose another "
                        "metric or family"
                    )

    def _plan(self) -> Iterator[PlannedRun]:
        settings = self.settings
        for seed, condition in itertools.product((*settings.tuning_seeds, *settings.seeds), settings.conditions):
            world, value = condition
            world_values = merge(self.base, self._changes(f"worlds.{world}", settings.worlds.get(world, {})))
            for name, family in settings.families.items():
                tuning = seed in settings.tuning_seeds
                if tuning and (len(family.configurations) == 1 or value not in self._tuned_at):
                    continue
                family_values = merge(world_values, self._changes(f"families.{name}.settings", family.settings))
                for label, configuration in family.configurations.items():
                    values = merge(family_values, self._changes(f"families.{name}.grid", configuration))
                    decided = {"model.name": family.model or name, settings.axis_key: value}
                    values = merge(values, nest(decided | dict.fromkeys(settings.kind.seeds, seed)))
                    source = f"study {self.name}, families.{name}"
                    run_settings = settings.kind.problem.settings_type.from_values(values, source)
                    yield PlannedRun(name, label, condition, seed, tuning, run_settings)

    @property
    def _tuned_at(self) -> list[int | float]:
        values = self.settings.tuning_values
        return self.settings.values if values is None else values

    def _changes(self, key: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Nested settings, refused if the grid sets one of them for every run."""
        nested = nest(values)
        for decided in self._decided:
            *parents, last = decided.split(".")
            group: Any = nested
            for parent in parents:
                group = group.get(parent, {}) if isinstance(group, dict) else {}
            if isinstance(group, dict) and last in group:
                raise ConfigError(f"study {self.name}, {key}: {decided} is set by the grid of the study; leave it out")
        return nested

    def check_grown_from(self, saved: "Study", folder: str) -> None:
        """Refuse to continue with the results of `saved`, unless this study plans all its runs."""
        planned = {run.name: run.settings.model_dump() for run in self.runs}
        for run in saved.runs:
            if run.name not in planned:
                raise ConfigError(
                    f"{folder} holds another study: it has the run {run.name}, which this one does not plan; "
                    "name another folder with out=..., or give the same keys again"
                )
            values = run.settings.model_dump()
            changed = differences(values, planned[run.name])
            if changed:
                raise ConfigError(
                    f"{folder} holds another study: in {run.name}, {'; '.join(changed)}; use another out=..."
                )


def _without(values: Mapping[str, Any], keys: Collection[str], prefix: str = "") -> dict[str, Any]:
    """Nested mappings without some dotted keys."""
    return {
        key: _without(value, keys, f"{prefix}{key}.") if isinstance(value, Mapping) else value
        for key, value in values.items()
        if f"{prefix}{key}" not in keys
    }
