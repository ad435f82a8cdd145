"""Training runs of any learner, from a new folder to the end, as a generator of metrics: the caller owns the loop."""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch.utils.tensorboard import SummaryWriter

from qrl.agents.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from qrl.agents.learners.base import Learner
from qrl.agents.scaling import Scaling
from qrl.agents.runs.run_folder import RunFolder
from qrl.common.seeds import derived_seed
from qrl.agents.runs.settings import ModelSettings, RunSettings, differences
from qrl.envs.npz import Data
from qrl.agents.errors import CheckpointError, RunError, TrainingError
from qrl.common.errors import ConfigError
from qrl.compiling import has_compiler
from qrl.q_models.base import QModel
from qrl.registry import find
from qrl.spec import QModelSpec

Metrics = dict[str, float]
SettingsT = TypeVar("SettingsT", bound=RunSettings)


@dataclass
class Training(ABC):
    """Everything that a training step needs, made from settings and data."""

    settings: Any
    dataset: Any
    model_params: dict[str, Any]
    learner: Learner[Any, Any]
    sampler: Any
    scaling: Scaling

    SETTINGS: ClassVar[type[RunSettings]]
    DATASET: ClassVar[type[Data]]

    @classmethod
    @abstractmethod
    def build(cls, settings: Any, dataset: Any) -> Self: ...

    @classmethod
    @abstractmethod
    def collect(cls, settings: Any) -> Any:
        """The data that the settings describe, if they name no file."""

    @classmethod
    def prepare(cls, settings: RunSettings) -> Self:
        """What is to be trained, from settings that leave things to be found out."""
        settings = resolve(settings)
        named = settings.dataset
        return cls.build(settings, cls.collect(settings) if named is None else cls.DATASET.load(named))

    @classmethod
    def start(cls, settings: RunSettings, force: bool = False) -> tuple[RunFolder, Self]:
        """A new run: its folder, with a checkpoint of the start, and what is to be trained."""
        training = cls.prepare(settings)
        folder = RunFolder.new(training.settings.run, force)
        try:
            if training.settings.dataset is None:
                training.dataset.save(folder.dataset)
            folder.write_facts(
                dataset=repr(training.dataset),
                dataset_hash=training.dataset.content_hash,
                model_origin=find(training.settings.model.name).origin,
                num_steps=training.learner.num_steps,
            )
            training.save(folder.checkpoint)
            folder.write_config(training.settings.model_dump())
        except BaseException:  # also when interrupted: a half-made run helps nobody
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        return folder, training

    @classmethod
    def resume(cls, path: str | Path) -> tuple[RunFolder, Self]:
        """A run as its last checkpoint left it."""
        folder = RunFolder.existing(path)
        folder.check_kind(cls.SETTINGS)
        settings = cls.SETTINGS.from_values(folder.read_config(), str(folder.config))
        folder.find_model(settings.model.name)
        training = cls.build(settings, cls.DATASET.load(folder.find_dataset()))
        training.restore(folder.checkpoint)
        return folder, training

    @property
    def notices(self) -> list[str]:
        """What a user may want to know of the data before training."""
        return []

    @property
    @abstractmethod
    def loss_parts(self) -> Sequence[str]:
        """The names of what the loss is made of."""

    @property
    @abstractmethod
    def evaluated(self) -> Sequence[str]:
        """The names of what `evaluate` measures."""

    @abstractmethod
    def evaluate(self) -> Metrics: ...

    @property
    def columns(self) -> list[str]:
        """Those of the metrics' file."""
        return [
            *("step", "loss", *(f"loss_{part}" for part in self.loss_parts)),
            *("predicted_discount", "predicted_distance", "target_discount", "gradient_norm", "lr", "steps_per_second"),
            *self.evaluated,
        ]

    def save(self, path: Path) -> None:
        if not all(parameter.isfinite().all() for parameter in self.learner.model.parameters()):
            raise TrainingError(f"weights are not finite after step {self.learner.step}; try a lower learner.lr")
        spec = self.learner.model.spec
        checkpoint = Checkpoint(
            step=self.learner.step,
            model_name=self.settings.model.name,
            model_params=self.model_params,
            observation_dim=spec.observation_dim,
            num_actions=spec.num_actions,
            discount=spec.discount,
            dataset_hash=self.dataset.content_hash,
            settings=self.settings.kept,
            sampler=self.sampler.state_dict(),
        )
        scaling = {"observations.mean": self.scaling.mean, "observations.scale": self.scaling.scale}
        save_checkpoint(path, checkpoint, self.learner.tensors() | scaling)

    def restore(self, path: Path) -> None:
        checkpoint, tensors = load_checkpoint(path)
        if checkpoint.dataset_hash != self.dataset.content_hash:
            raise CheckpointError(f"{path}: the dataset is not the one that this run was trained on")
        changed = differences(checkpoint.settings, self.settings.kept, self.settings.kept)
        if changed:
            raise CheckpointError(f"{path} was trained with other settings: {'; '.join(changed)}")
        try:
            self.learner.load_tensors(tensors, checkpoint.step)
            self.sampler.load_state_dict(checkpoint.sampler)
        except (RuntimeError, KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f"{path} does not fit the model {self.settings.model.name}: {error}") from error


def build_model(settings: RunSettings, spec: QModelSpec) -> tuple[QModel, dict[str, Any]]:
    """The model at its start, and all its parameters."""
    torch.set_num_threads(settings.threads or torch.get_num_threads())
    params = _parameters(settings.model)
    device = _device(settings.device)
    with torch.random.fork_rng():
        torch.manual_seed(derived_seed(settings.seed, "model"))
        model = find(settings.model.name).make(spec, params).to(device)
    if settings.compile == "on":
        model.accelerate_()
    return model, params


def _parameters(settings: ModelSettings) -> dict[str, Any]:
    """All parameters of the model; qrl's own models get `width` and `latent_size`, unless parameters say otherwise."""
    registration = find(settings.name)
    given = settings.params
    values = registration.parameters.from_values(given, f"model {settings.name}").model_dump()
    if registration.origin != "qrl":
        return values
    latent = settings.latent_size
    if latent is not None and "latent_size" in values and "latent_size" not in given:
        values["latent_size"] = latent
    if "hidden_sizes" not in given:
        widest = max(values["hidden_sizes"])
        values["hidden_sizes"] = [
            settings.width if size == widest else latent or size for size in values["hidden_sizes"]
        ]
    return values


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device: {name!r} cannot be used here ({str(error).splitlines()[0]})") from None
    return device


def resolve(settings: SettingsT) -> SettingsT:
    """Settings in which nothing is left to be found out; a misspelt model is told before data is made."""
    find(settings.model.name)
    compile_ = settings.compile
    if compile_ == "auto":
        compile_ = "on" if has_compiler() else "off"
    data = Path(settings.dataset).stem if settings.dataset is not None else settings.data_name
    run = settings.run or str(Path("runs") / f"{data}__{settings.model.name}__seed{settings.seed}")
    threads = settings.threads or torch.get_num_threads()
    dataset = None if settings.dataset is None else str(Path(settings.dataset).absolute())
    return settings.model_copy(update={"compile": compile_, "dataset": dataset, "run": run, "threads": threads})


def train(folder: RunFolder, training: Training, stop: Callable[[], bool] = lambda: False) -> Iterator[Metrics]:
    """Train to the end, or until `stop()`, and yield each row of metrics; both ways end with a checkpoint."""
    learner = training.learner
    with folder.lock():
        on_disk = load_checkpoint(folder.checkpoint, with_tensors=False)[0].step
        if on_disk != learner.step:
            raise RunError(f"{folder.path} has gone on to step {on_disk} meanwhile; resume it again")
        if folder.complete.exists():
            return
        folder.start_metrics(training.columns, learner.step)
        try:
            with closing(SummaryWriter(str(folder.tensorboard), purge_step=learner.step + 1)) as writer:
                yield from _steps(folder, training, stop, writer)
        except TrainingError as error:
            raise TrainingError(
                f"model {training.settings.model.name}: {error}; {folder.checkpoint} keeps the last good state"
            ) from None
        except OSError as error:
            raise RunError(f"{folder.path} cannot be written: {error.strerror or error}") from error
        if learner.step == learner.num_steps:
            folder.mark_complete()


def _steps(folder: RunFolder, training: Training, stop: Callable[[], bool], writer: SummaryWriter) -> Iterator[Metrics]:
    settings, learner = training.settings, training.learner
    clock, clock_step = time.monotonic(), learner.step
    while learner.step < learner.num_steps and not stop():
        step = learner.step + 1
        last = step == learner.num_steps
        evaluate = last or step % settings.evaluate_every == 0
        log = evaluate or step % settings.log_every == 0
        metrics = learner.update(training.sampler, with_metrics=log)
        if log:
            elapsed = time.monotonic() - clock
            row = {"step": step, **metrics, "steps_per_second": (step - clock_step) / max(elapsed, 1e-9)}
            if evaluate:
                row |= training.evaluate()
            folder.append_metrics(training.columns, row)
            for name, value in row.items():
                writer.add_scalar(name, value, step)
            yield row
            clock, clock_step = time.monotonic(), step
        if last or step % settings.checkpoint_every == 0:
            training.save(folder.checkpoint)
    if learner.step < learner.num_steps:
        training.save(folder.checkpoint)
