"""All settings of training runs. Nothing here imports torch, so that --help answers at once."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SerializeAsAny, ValidatorFunctionWrapHandler, create_model, field_validator

from qrl.agents.errors import CheckpointError
from qrl.agents.learners.registry import builtin_learners, find_settings, owners
from qrl.agents.learners.settings import COMMANDS, LearnerSettings, MboldSettings, RegressionSettings
from qrl.agents.runs.trackers import TrackerNames
from qrl.common.config_files import merge
from qrl.common.errors import ConfigError, UserError
from qrl.common.settings import PathText, Settings
from qrl.common.text import listed, shown
from qrl.envs.collector import CollectorSettings
from qrl.envs.graphs.collector import GraphSettings
from qrl.registry import builtin_names

REPLACEABLE = ("dataset", "checkpoint_keep", "logger")  # keys that a resume may change
EXTENDABLE = ("epochs", "min_steps")  # keys of the learner that may be raised, to extend the training
VALIDATION, MIN_TRAJECTORIES = 0.1, 10  # held out of an unknown world, if it has enough trajectories
DATA_GROUPS = {"collector", "graph"}  # what data is made from; a run on a file is identified by the file's hash


class ModelSettings(Settings):
    name: str = Field("iqe-maxmean", description="registered name of the Q-model; list-models shows them")
    width: int = Field(
        1024, ge=1, le=2**16, description="width of the encoder's widest hidden layers, unless hidden_sizes are given"
    )
    latent_size: int | None = Field(
        None,
        ge=1,
        le=2**16,
        description="dimension of a pair's latent, or of the last hidden layer of an unconstrained network",
    )
    params: dict[str, Any] = Field({}, description="its parameters, as model.params.KEY=VALUE; see list-models NAME")

    @classmethod
    def names(cls, key: str) -> list[str]:
        return builtin_names() if key == "name" else super().names(key)


class RunSettings(Settings):
    """What all training runs have in common."""

    dataset: PathText | None = Field(None, description="data file; without one, data is made as the other keys say")
    model: ModelSettings = Field(ModelSettings(), description="the Q-model")
    run: PathText | None = Field(None, description="folder of the run; by default runs/DATA__MODEL__seedSEED")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of initial weights, batches and evaluation")
    device: str = Field("cpu", description="torch device")
    threads: int | None = Field(None, ge=1, le=4096, description="CPU threads; by default torch's choice")
    compile: Literal["auto", "on", "off"] = Field(
        "auto", description="compiled kernels, worth it from about a thousand steps; auto: if there is a C++ compiler"
    )
    log_every: int = Field(50, ge=1, description="steps between rows of metrics")
    evaluate_every: int = Field(1000, ge=1, description="steps between evaluations")
    checkpoint_every: int = Field(500, ge=1, description="steps between checkpoints")
    checkpoint_keep: int | None = Field(
        None, ge=1, description="keep every k-th checkpoint in checkpoints/; by default only the last one"
    )
    logger: TrackerNames = Field(
        ("tensorboard",),
        description="trackers beside metrics.csv, separated by commas: tensorboard, wandb, trackio; empty for none",
    )
    learner: SerializeAsAny[LearnerSettings]

    @classmethod
    def _default_learner(cls) -> LearnerSettings:
        default: LearnerSettings = cls.model_fields["learner"].default
        return default

    @classmethod
    def _learner_type(cls, values: Mapping[str, Any]) -> type[LearnerSettings]:
        """The settings of the learner that the values of the group `learner` name."""
        default = cls._default_learner()
        name = values.get("name", default.name)
        settings = find_settings(name if isinstance(name, str) else default.name)
        if settings.DATA != default.DATA:
            raise ConfigError(
                f"learner.name: {name} is for {COMMANDS[settings.DATA]}, not for {COMMANDS[default.DATA]}"
            )
        return settings

    @field_validator("learner", mode="wrap")
    @classmethod
    def _of_its_learner(cls, value: Any, validate: ValidatorFunctionWrapHandler) -> LearnerSettings:
        if isinstance(value, Mapping):
            return cls._learner_type(value).model_validate(value)
        checked: LearnerSettings = validate(value)
        return checked

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> type[Self]:
        """With the keys of the learner that the values name."""
        learner = values.get("learner")
        return _with_learner(cls, cls._learner_type(learner if isinstance(learner, Mapping) else {}))

    @classmethod
    def of_saved(cls, saved: Mapping[str, Any], source: str, error: type[UserError] = ConfigError) -> Self:
        """The settings of a run in a file; keys that its release did not have, have the values of what it did."""
        learner = saved.get("learner")
        if isinstance(learner, Mapping):
            try:
                once = cls._learner_type(learner).ONCE
            except UserError as unknown:
                raise type(unknown)(f"{source}: {unknown}") from None
            saved = {**saved, "learner": merge(once, learner)}
        return cls.from_values(saved, source, error)

    @classmethod
    def suggestions(cls, key: str) -> list[str]:
        return builtin_learners(cls._default_learner().DATA) if key == "learner.name" else super().suggestions(key)

    @classmethod
    def explain_unknown(cls, key: str) -> str | None:
        group, name, *_ = *key.split("."), ""
        default = cls._default_learner()
        others = owners(name, default.DATA) if group == "learner" else []
        if not others:
            return None
        own = ", ".join(cls.siblings("learner."))
        return f"{key} belongs to {', '.join(others)}; {default.name} has {own}"

    @property
    @abstractmethod
    def data(self) -> Settings:
        """The settings that the data is made from, unless a file is named."""

    @property
    @abstractmethod
    def data_name(self) -> str:
        """The name of the data in that of the run's folder, if it has no file."""

    @abstractmethod
    def with_data(self, data: Settings) -> Self:
        """These settings with other ones for the data."""

    @property
    def fixed(self) -> dict[str, Any]:
        """What must not change between a run and its checkpoints.

        The folder may be moved, the data is identified by its hash, and training may be extended.
        """
        free = {"run", *REPLACEABLE, *DATA_GROUPS}
        return self.model_dump(mode="json", exclude=dict.fromkeys(free, True) | {"learner": set(EXTENDABLE)})

    def changed(self, changes: Mapping[str, Any], run: Path) -> Self:
        """The settings with those changes that `run` may undergo."""
        saved = self.model_dump()
        wanted = merge(saved, changes)
        free = {key: wanted[key] for key in REPLACEABLE}
        if isinstance(wanted["learner"], Mapping):
            free["learner"] = saved["learner"] | {key: wanted["learner"][key] for key in EXTENDABLE}
        refused = differences(saved | free, wanted)
        if not refused:
            changed = type(self).from_values(wanted, f"--resume {run}")
            longer = {key: getattr(changed.learner, key) for key in EXTENDABLE}
            shorter = {key: value for key, value in longer.items() if value < getattr(self.learner, key)}
            refused = [f"learner.{key} may be raised, not lowered to {value}" for key, value in shorter.items()]
        if refused:
            raise ConfigError(
                f"--resume {run} cannot change settings: {listed(refused)}; leave them out, or start a new run"
            )
        if changes.get("dataset") is None:
            return changed
        return changed.model_copy(update={"dataset": str(Path(changes["dataset"]).absolute())})

    def changes_since(self, saved: Mapping[str, Any], source: str) -> list[str]:
        """What differs from the `fixed` settings of a checkpoint."""
        return differences(type(self).of_saved(saved, source, CheckpointError).fixed, self.fixed)


class TrainSettings(RunSettings):
    CONFIGS = "train"
    NAMED = ("collector.world",)

    model: ModelSettings = Field(ModelSettings(name="mrn-fixed", width=512, latent_size=128), description="the Q-model")
    collector: SerializeAsAny[CollectorSettings] = Field(CollectorSettings(), description="how data is collected")
    validation: float | None = Field(
        None,
        ge=0,
        le=0.5,
        description="fraction of the trajectories that is held out for validation, the same ones for every seed; by "
        f"default {VALIDATION} of {MIN_TRAJECTORIES} trajectories or more of an unknown world, else none",
    )
    learner: SerializeAsAny[LearnerSettings] = Field(MboldSettings(), description="how it learns")

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> type[Self]:
        """With the keys of the learner and of the world that the values name."""
        collector = values.get("collector")
        chosen = CollectorSettings.of_values(collector) if isinstance(collector, Mapping) else CollectorSettings
        return _with_collector(super().of_values(values), chosen)

    @property
    def data(self) -> CollectorSettings:
        return self.collector

    @property
    def data_name(self) -> str:
        return self.collector.world_name

    def with_data(self, data: Settings) -> Self:
        return self.model_copy(update={"collector": data})


class GraphTrainSettings(RunSettings):
    CONFIGS = "graphs"

    graph: GraphSettings = Field(GraphSettings(), description="the graph and its pairs, as for collect-graph")
    learner: SerializeAsAny[LearnerSettings] = Field(RegressionSettings(), description="how it learns")

    @property
    def data(self) -> GraphSettings:
        return self.graph

    @property
    def data_name(self) -> str:
        return self.graph.kind if self.graph.file is None else Path(self.graph.file).name.split(".")[0]

    def with_data(self, data: Settings) -> Self:
        return self.model_copy(update={"graph": data})


@cache
def _with_learner(cls: type[RunSettings], learner: type[LearnerSettings]) -> type[Any]:
    """The settings of a command, with a field of exactly this type for its learner."""
    field = (learner, Field(learner(), description="how it learns"))
    return create_model(cls.__name__, __base__=cls, learner=field)


@cache
def _with_collector(cls: type[TrainSettings], collector: type[CollectorSettings]) -> type[Any]:
    """The settings of train-agent, with a field of exactly this type for its collector."""
    if collector is CollectorSettings:
        return cls
    return create_model(cls.__name__, __base__=cls, collector=(collector, Field(collector())))


def differences(saved: Any, wanted: Any, prefix: str = "") -> list[str]:
    """What `wanted` changes of the `saved` values: a line per key; one that either lacks counts as None."""
    if not isinstance(wanted, dict) or not isinstance(saved, dict):
        return [] if saved == wanted else [f"{prefix} was {shown(saved)}, now {shown(wanted)}"]
    changes = []
    for key in dict.fromkeys((*wanted, *saved)):
        changes += differences(saved.get(key), wanted.get(key), f"{prefix}.{key}" if prefix else key)
    return changes
