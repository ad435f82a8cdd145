"""A study: the training runs that it plans. Nothing here imports torch, so that mistakes are reported at once."""

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from qrl.agents.runs.settings import RunSettings, differences
from qrl.agents.studies.settings import Condition, StudySettings, axis_text
from qrl.common.config_files import merge, read_config
from qrl.common.errors import ConfigError
from qrl.common.nesting import nest
from qrl.common.text import clip, listed, shown

MAX_RUN_NAME = 230  # bytes; a file system allows 255, also for the temporary file of a failure's record


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
        parts = (self.family, configuration, world, axis_text(value), f"seed{self.seed}")
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
            raise ConfigError(
                f"study {self.name}: {times} runs would be called {clip(name)}; rename a family or a world"
            )
        too_long = [run.name for run in runs if len(run.name.encode()) > MAX_RUN_NAME]
        if too_long:
            raise ConfigError(
                f"study {self.name}: the name of the run {clip(too_long[0])} has more than {MAX_RUN_NAME} bytes; "
                "shorten the names of families and worlds, or the values of the grid"
            )
        self._check_metrics(runs)
        return runs

    def _check_metrics(self, runs: list[PlannedRun]) -> None:
        """Refuse claims about the distances of families whose learners learn none."""
        kind = self.settings.kind
        learners = {run.family: run.settings.learner for run in runs if run.settings.learner.LEARNS == "scores"}
        for claim in self.settings.claims:
            metric = claim.metric or kind.ranking
            for family in learners.keys() & {*claim.more, *claim.than}:
                if kind.metrics[metric].needs_distances:
                    raise ConfigError(
                        f"study {self.name}, claim {shown(claim.text)}: the family {family} has no {metric}, because "
                        f"its learner {learners[family].name} learns scores of actions, not distances; choose another "
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
                if not family.runs_in(world):
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

    def check_grown_from(self, saved: "Study", folder: str, option: str = "out=") -> None:
        """Refuse to continue with the results of `saved`, unless this study plans all its runs.

        folder: where they are, which `option` names.
        """
        planned = {run.name: run.settings.model_dump() for run in self.runs}
        for run in saved.runs:
            if run.name not in planned:
                raise ConfigError(
                    f"{folder} holds another study: it has the run {clip(run.name)}, which this one does not plan; "
                    f"name another folder with {option}..., or give the same keys again"
                )
            values = run.settings.model_dump()
            changed = differences(values, planned[run.name])
            if changed:
                raise ConfigError(
                    f"{folder} holds another study: in {run.name}, {listed(changed)}; name another folder with "
                    f"{option}..."
                )


def _without(values: Mapping[str, Any], keys: Collection[str], prefix: str = "") -> dict[str, Any]:
    """Nested mappings without some dotted keys."""
    return {
        key: _without(value, keys, f"{prefix}{key}.") if isinstance(value, Mapping) else value
        for key, value in values.items()
        if f"{prefix}{key}" not in keys
    }
