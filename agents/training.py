"""A training run from settings to a trained model, as a generator of metrics: the caller owns the loop."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.tensorboard import SummaryWriter

from agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from agents.evaluation import score
from agents.goal_sampler import GoalSampler
from agents.mbold import Learner
from agents.observations import Scaling, fit_scaling
from agents.run_folder import RunFolder
from agents.seeds import derived_seed
from agents.settings import ModelSettings, TrainSettings, differences
from envs.collector import collect
from envs.dataset import Dataset
from envs.ground_truth import GroundTruth, ground_truth
from qrl.common.errors import CheckpointError, ConfigError, RunError, TrainingError
from qrl.registry import find
from qrl.spec import QModelSpec

Metrics = dict[str, float]


@dataclass
class Training:
    """Everything that a training step needs, made from settings and a dataset."""

    settings: TrainSettings
    dataset: Dataset
    model_params: dict[str, Any]
    learner: Learner
    sampler: GoalSampler
    scaling: Scaling
    truth: GroundTruth | None

    @classmethod
    def build(cls, settings: TrainSettings, dataset: Dataset) -> "Training":
        learner_settings = settings.learner
        torch.set_num_threads(settings.threads or torch.get_num_threads())
        spec = QModelSpec(
            dataset.header.spaces.observation_dim, dataset.header.spaces.num_actions, learner_settings.discount
        )
        registration = find(settings.model.name)
        params = _parameters(settings.model)
        device = _device(settings.device)
        observations = torch.tensor(dataset.observations)
        scaling = fit_scaling(observations, learner_settings.standardize)
        with torch.random.fork_rng():
            torch.manual_seed(derived_seed(settings.seed, "model"))
            model = registration.make(spec, params).to(device)
        if settings.compile == "on":
            model.accelerate_()
        num_steps = learner_settings.num_steps(dataset.num_transitions)
        return cls(
            settings=settings,
            dataset=dataset,
            model_params=params,
            learner=Learner(model, scaling(observations).to(device), learner_settings, num_steps),
            sampler=GoalSampler(dataset, learner_settings.goals, derived_seed(settings.seed, "batches")),
            scaling=scaling,
            truth=None if dataset.layout is None else ground_truth(dataset.layout),
        )

    @property
    def notices(self) -> list[str]:
        """What a user may want to know of the data before training."""
        found = []
        transitions, batch = self.dataset.num_transitions, self.settings.learner.batch_size
        if transitions < batch:
            found.append(f"the dataset has {transitions} transitions, fewer than a batch of {batch}: many are repeated")
        if self.truth is None:
            found.append("the dataset has no layout: nothing is evaluated against the truth")
        return found

    def evaluate(self) -> Metrics:
        if self.truth is None:
            return {}
        seed = derived_seed(self.settings.seed, f"evaluation {self.learner.step}")
        return score(self.learner.model, self.learner.observations, self.truth, seed)

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


def _parameters(settings: ModelSettings) -> dict[str, Any]:
    """All parameters of the model; the widest hidden layers of qrl's own models get `width`, if no sizes are given."""
    registration = find(settings.name)
    values = registration.parameters.from_values(settings.params, f"model {settings.name}").model_dump()
    if registration.origin == "qrl" and "hidden_sizes" not in settings.params:
        widest = max(values["hidden_sizes"])
        values["hidden_sizes"] = [settings.width if size == widest else size for size in values["hidden_sizes"]]
    return values


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device: {name!r} cannot be used here ({str(error).splitlines()[0]})") from None
    return device


def resolve(settings: TrainSettings) -> TrainSettings:
    """Settings in which nothing is left to be found out."""
    compile_ = settings.compile
    if compile_ == "auto":
        compile_ = "on" if any(shutil.which(name) for name in ("g++", "clang++", "c++")) else "off"
    data = Path(settings.dataset).stem if settings.dataset is not None else Path(settings.collector.layout).stem
    run = settings.run or str(Path("runs") / f"{data}__{settings.model.name}__seed{settings.seed}")
    threads = settings.threads or torch.get_num_threads()
    dataset = None if settings.dataset is None else str(Path(settings.dataset).absolute())
    return settings.model_copy(update={"compile": compile_, "dataset": dataset, "run": run, "threads": threads})


def load_data(settings: TrainSettings) -> Dataset:
    if settings.dataset is not None:
        return Dataset.load(settings.dataset)
    return collect(settings.collector, progress=True)


def start(settings: TrainSettings, force: bool = False) -> tuple[RunFolder, Training]:
    """A new run: its folder, with a checkpoint of the start, and what is to be trained."""
    settings = resolve(settings)
    find(settings.model.name)  # a misspelt name is told before data is collected and a folder made
    dataset = load_data(settings)
    training = Training.build(settings, dataset)
    assert settings.run is not None
    folder = RunFolder.new(settings.run, force)
    try:
        if settings.dataset is None:
            dataset.save(folder.dataset)
        folder.write_facts(
            dataset=repr(dataset),
            dataset_hash=dataset.content_hash,
            model_origin=find(settings.model.name).origin,
            num_steps=training.learner.num_steps,
        )
        training.save(folder.checkpoint)
        folder.write_config(settings.model_dump())
    except BaseException:  # also when interrupted: a half-made run helps nobody
        shutil.rmtree(folder.path, ignore_errors=True)
        raise
    return folder, training


def resume(path: str | Path) -> tuple[RunFolder, Training]:
    """A run as its last checkpoint left it."""
    folder = RunFolder.existing(path)
    settings = TrainSettings.from_values(folder.read_config(), str(folder.config))
    folder.find_model(settings.model.name)
    dataset = Dataset.load(folder.find_dataset())
    training = Training.build(settings, dataset)
    training.restore(folder.checkpoint)
    return folder, training


def train(folder: RunFolder, training: Training, stop: Callable[[], bool] = lambda: False) -> Iterator[Metrics]:
    """Train to the end, or until `stop()`, and yield each row of metrics; both ways end with a checkpoint."""
    learner = training.learner
    with folder.lock():
        on_disk = load_checkpoint(folder.checkpoint, with_tensors=False)[0].step
        if on_disk != learner.step:
            raise RunError(f"{folder.path} has gone on to step {on_disk} meanwhile; resume it again")
        if folder.complete.exists():
            return
        folder.start_metrics(_columns(training), learner.step)
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
    columns = _columns(training)
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
            folder.append_metrics(columns, row)
            for name, value in row.items():
                writer.add_scalar(name, value, step)
            yield row
            clock, clock_step = time.monotonic(), step
        if last or step % settings.checkpoint_every == 0:
            training.save(folder.checkpoint)
    if learner.step < learner.num_steps:
        training.save(folder.checkpoint)


def _columns(training: Training) -> list[str]:
    learner = training.settings.learner
    optional = {"loss_conservative": learner.conservative > 0, "loss_triangle": learner.triangle > 0}
    return [
        *("step", "loss", "loss_td", *(name for name, used in optional.items() if used)),
        *("predicted_discount", "predicted_distance", "target_discount", "gradient_norm", "lr", "steps_per_second"),
        *(("success_rate", "signed_error", "absolute_error") if training.truth is not None else ()),
    ]
