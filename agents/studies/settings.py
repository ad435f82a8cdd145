"""The settings of a study. Nothing here imports torch: --help lists the keys."""

import itertools
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, model_validator

from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.studies.kinds import KINDS, Kind
from qrl.common.names import unknown_name
from qrl.common.settings import PathText, Settings
from qrl.common.text import clip, shown

_NAME = re.compile(r"[\w.+=-]+")
MAX_RUNS = 100_000  # planned by a study, which takes seconds; the largest built-in one has 30,150
MAX_NAME = 100  # characters of the name of a study, family or world


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
    worlds: list[str] | None = Field(None, min_length=1, description="worlds in which it runs; by default all")

    def runs_in(self, world: str) -> bool:
        return self.worlds is None or world in self.worlds

    @property
    def num_configurations(self) -> int:
        return math.prod(map(len, self.grid.values()))

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

    It compares the means over the families, or with `each` every family of one side with every one of the other, always
    averaged over worlds and values of the axis. With a `margin`, a side may be worse by up to that much.
    """

    text: str = Field(min_length=1)
    more: list[str] = Field(min_length=1)
    than: list[str] = Field(min_length=1)
    metric: str | None = None  # by default the one that families are ranked by
    worlds: list[str] | None = None  # by default all
    than_worlds: list[str] | None = None  # worlds of the other side, if they differ
    at: list[float] | None = None  # values of the axis; by default all
    than_at: list[float] | None = None  # values of the other side, if they differ
    margin: float = Field(0, ge=0)
    each: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key, one, other in (("at", self.at, self.than_at), ("worlds", self.worlds, self.than_worlds)):
            if other is not None and len(other) != len(one or []):
                raise ValueError(
                    f"{key} and than_{key} must have the same number of values, because they are compared one by one"
                )
        return self


class StudySettings(Settings):
    CONFIGS = "studies"

    name: str | None = Field(None, max_length=MAX_NAME, description="name of the study; by default that of its file")
    out: PathText | None = Field(None, description="folder of the results; by default runs/STUDY")
    command: Literal["train-agent", "train-graph"] = Field("train-agent", description="command that trains the runs")
    config: PathText | None = Field(None, description="config of that command, on which all runs are based")
    settings: dict[str, Any] = Field({}, description="settings of all runs on top of it, with the command's keys")
    families: dict[str, Family] = Field(
        min_length=1, description="models by name, each with model, settings and a grid of hyperparameters"
    )
    axis: Axis = Field(
        description="one key and its values, such as collector.trajectories: [100, 1000]; the axis of the figure"
    )
    worlds: dict[str, dict[str, Any]] = Field(
        {}, description="settings by name, tuned separately; a column of panels of the figure each"
    )
    seeds: list[int] = Field(min_length=1, description="seeds of data, initial weights and batches")
    tuning_seeds: list[int] = Field(
        [], description="seeds used only to select the hyperparameter configurations of the families"
    )
    tuning_values: list[int | float] | None = Field(
        None, description="values of the axis at which configurations are tuned; by default all"
    )
    tune: Literal["world", "condition"] = Field(
        "world",
        description="what has a configuration of its own: a family in each world, or also at each value of the axis",
    )
    evaluate: Literal["all", "selected"] = Field(
        "all", description="configurations that run on the seeds: all, or only the one selected on the tuning seeds"
    )
    claims: list[Claim] = Field(
        [],
        description="claims that the report tests: text, more, than, metric, worlds, than_worlds, at, than_at, margin, "
        "each",
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
                raise ValueError(f"{key}: {shown(values)} has a value twice")
        for name in self.worlds:
            _check_name("worlds", name)
        unknown = [value for value in self.tuning_values or [] if value not in self.values]
        if unknown or self.tuning_values == []:
            raise ValueError(f"tuning_values: must be some of the values of the axis, {shown(self.values)}")
        if self.tune == "condition" and set(self.tuning_values or self.values) < set(self.values):
            raise ValueError("tuning_values: with tune: condition, configurations are tuned at all values of the axis")
        shared = sorted(set(self.seeds) & set(self.tuning_seeds))
        if shared:
            raise ValueError(f"seeds and tuning_seeds must differ, but both have {shown(shared)}")
        self._check_size()
        for name, family in self.families.items():
            self._check_family(name, family)
        for claim in self.claims:
            self._check_claim(claim)
        return self

    def _check_size(self) -> None:
        """Count the runs before any is planned: a few lists have more combinations than memory holds."""
        configurations = sum(family.num_configurations for family in self.families.values())
        counts = {
            "configurations of all families": configurations,
            "worlds": len(self.worlds) or 1,
            f"values of {self.axis_key}": len(self.values),
            "seeds": len(self.seeds) + len(self.tuning_seeds),
        }
        if math.prod(counts.values()) > MAX_RUNS:
            factors = " x ".join(f"{clip(f'{count:,}', 30)} {clip(unit)}" for unit, count in counts.items())
            raise ValueError(f"more than {MAX_RUNS:,} runs would be planned: {factors}; use fewer of them")

    def _check_family(self, name: str, family: Family) -> None:
        _check_name("families", name)
        if name in REFERENCES:
            raise ValueError(f"families: {shown(name)} is the name of a reference; choose another")
        unknown = [world for world in family.worlds or [] if world not in self.worlds]
        if unknown:
            raise ValueError(f"families.{name}.worlds: {unknown_name('world', unknown[0], list(self.worlds))}")
        empty = [key for key, values in family.grid.items() if not values]
        if empty:
            raise ValueError(f"families.{name}.grid.{clip(empty[0])}: an empty list leaves no run")
        if len(family.configurations) > 1 and not self.tuning_seeds:
            raise ValueError(
                f"families.{name} has several hyperparameter configurations: add tuning_seeds to select one"
            )

    def _check_claim(self, claim: Claim) -> None:
        for kind, named, known in (
            ("family", [*claim.more, *claim.than], self.families),
            ("metric", [claim.metric or self.kind.ranking], self.kind.metrics),
            ("world", [*(claim.worlds or []), *(claim.than_worlds or [])], self.worlds),
            (self.axis_key, map(axis_text, [*(claim.at or []), *(claim.than_at or [])]), map(axis_text, self.values)),
        ):
            names = list(known)
            for name in named:
                if name not in names:
                    raise ValueError(f"claim {shown(claim.text)}: {unknown_name(kind, name, names)}")
        for families, worlds in ((claim.more, claim.worlds), (claim.than, claim.than_worlds or claim.worlds)):
            for name, world in itertools.product(families, worlds or self.worlds):
                if not self.families[name].runs_in(world):
                    raise ValueError(
                        f"claim {shown(claim.text)}: the family {name} does not run in the world {world}; name the "
                        "worlds that the claim is about with worlds"
                    )


def _check_name(key: str, name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise ValueError(
            f"{key}: the name {shown(name)} must consist of at most {MAX_NAME} letters, digits and . + - _ ="
        )


def axis_text(value: float) -> str:
    """A value of the axis in names and messages."""
    return f"{value:g}"
