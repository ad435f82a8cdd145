"""A training run: a folder with settings, metrics and checkpoints, and the loop that trains its learner."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qrl.agents.errors import CheckpointError, RunError, TrainingError
from qrl.agents.learners.registry import find_learner
from qrl.agents.planning.agent import Agent
from qrl.agents.runs.checkpoint import Checkpoint, load_checkpoint
from qrl.agents.runs.folder import CHECKPOINT, CONFIG, DATASET, RECORD, check_folder, new_folder
from qrl.agents.runs.loading import load_agent
from qrl.agents.runs.metrics_file import TIMES, Clock, MetricsFile
from qrl.agents.runs.problems import PROBLEMS, problem_of
from qrl.agents.runs.record import RunRecord, relative_path
from qrl.agents.runs.settings import DATA_GROUPS, RunSettings
from qrl.agents.runs.trackers import Tracked, Tracker, check_installed, open_trackers, tags
from qrl.common.config_files import dump_yaml, read_config
from qrl.common.errors import ConfigError, RegistryError
from qrl.common.files import atomic_write, check_path, is_file, remove_leftovers
from qrl.common.locks import locked
from qrl.common.text import clip, listed
from qrl.envs.errors import DatasetError
from qrl.registry import Registration, find

if TYPE_CHECKING:
    from qrl.agents.runs.trainer import Trainer

Scalars = dict[str, float]


class Run:
    """A run on disk, finished or not: `train` continues it, `load_agent` gives what it has learned."""

    def __init__(self, path: str | Path, settings: RunSettings) -> None:
        self.path = Path(path)
        self.settings: Any = settings
        self.problem = problem_of(settings)
        self.config = self.path / CONFIG
        self.record = RunRecord(self.path / RECORD)
        self.metrics = MetricsFile(self.path / "metrics.csv")
        self.tensorboard = self.path / "tensorboard"
        self.checkpoint = self.path / CHECKPOINT
        self.complete = self.path / "COMPLETE"
        self._kept = self.path / "checkpoints"

    def __repr__(self) -> str:
        state = "complete" if self.complete.exists() else "not complete"
        return f"Run({str(self.path)!r}, {self.settings.model.name}, {state})"

    @property
    def name(self) -> str:
        return self.path.resolve().name

    # Starting, opening and resuming

    @classmethod
    def prepare(cls, settings: RunSettings, dataset: Any = None, init: str | Path | None = None) -> "Run":
        """A new run in memory, ready to train; nothing is written yet.

        dataset: the data itself, instead of a file or settings for it.
        init: a run whose weights and observation scaling the new one starts from.
        """
        from qrl.agents.runs.model import resolve
        from qrl.agents.runs.trainer import Trainer

        check_installed(settings.logger)
        settings = resolve(settings)
        source = None if init is None else cls.open(init)
        problem = problem_of(settings)
        if dataset is None:
            file = settings.dataset
            dataset = problem.collect(settings) if file is None else problem.dataset_type.load(file)
        settings = problem.resolve(settings, dataset)
        assert settings.run is not None
        run = cls(settings.run, settings)
        run.dataset = dataset
        if source is None:
            run.trainer = Trainer.build(settings, dataset)
        else:
            run.trainer = Trainer.warm_start(settings, dataset, source.checkpoint)
        return run

    @classmethod
    def start(
        cls, settings: RunSettings, *, dataset: Any = None, force: bool = False, init: str | Path | None = None
    ) -> "Run":
        """A new run in its folder, with a checkpoint of its initial weights; the arguments are those of `prepare`.

        force: delete the run that is in the folder.
        """
        from qrl.agents.runs.model import resolve

        settings = resolve(settings)
        check_folder(settings, force)  # before the work of preparing
        run = cls.prepare(settings, dataset, init)
        facts = run._facts()
        if init is not None:
            facts["init"] = {"run": str(Path(init).absolute()), "step": cls.open(init).step}
        with new_folder(run.settings, force):
            if run.settings.dataset is None:
                run.dataset.save(run.path / DATASET)
            run.record.write(facts)
            run._save()
            run._write_config()  # last: it makes the folder a run
        return run

    @classmethod
    def open(cls, path: str | Path, command: str | None = None) -> "Run":
        """An existing run; `command`: refuse runs of other commands."""
        config = check_path(path, RunError) / CONFIG
        if not is_file(config):
            raise RunError(f"{clip(path)} is not a training run: it has no {CONFIG}")
        values = read_config(str(config))
        unrecorded = "train-graph" if "graph" in values else "train-agent"  # by release 0.1
        facts = RunRecord(Path(path) / RECORD).read()
        made_by = facts.get("command", unrecorded)
        if made_by not in PROBLEMS or command not in (None, made_by):
            raise RunError(f"{path} is a run of {made_by}, not of {command or 'a command that this release has'}")
        try:
            settings = PROBLEMS[made_by].settings_type.of_saved(values, str(config))
        except RegistryError as error:
            raise RegistryError(f"{error} (the run's learner came from {facts.get('learner_origin')})") from None
        return cls(path, settings)

    @classmethod
    def resume(cls, path: str | Path, changes: dict[str, Any] | None = None, command: str | None = None) -> "Run":
        """A run as its last checkpoint left it.

        changes: `dataset`, the new path of the same data; `checkpoint_keep`; `logger`; or `learner` with more `epochs`
        or `min_steps`, which extend the training: the learning rate then follows the cosine of the new length, from the
        current step on.
        """
        run = cls.open(path, command)
        saved = run.settings
        if changes:
            run.settings = saved.changed(changes, run.path)
        check_installed(run.settings.logger)
        if not changes:
            run.trainer  # noqa: B018 - checks the data and the checkpoint
            return run
        if changes.get("dataset") is not None:
            run.dataset = run.problem.dataset_type.load(run.settings.dataset)
        learner = run.trainer.learner  # checks the data and the checkpoint before anything is written
        planned = saved.learner.num_steps(learner.num_samples)
        if run.settings.learner != saved.learner and learner.num_steps == planned:
            raise ConfigError(
                f"--resume {path}: the training stays at {planned:,} steps, the larger of learner.min_steps and "
                "learner.epochs in steps; raise the other key"
            )
        with locked(run.path, RunError):
            facts = run._facts()
            if learner.num_steps > planned:
                extension = {"step": learner.steps_done, "num_steps_before": planned}
                facts["extensions"] = [*run.record.read().get("extensions", []), extension]
            run.record.update(facts)
            run._write_config()
        return run

    # Data

    @cached_property
    def dataset(self) -> Any:
        """The data that the run was trained on."""
        path = self.dataset_path
        if not path.is_file():
            elsewhere = ", or evaluate-planning --dataset FILE" if self.problem.command == "train-agent" else ""
            raise DatasetError(
                f"{path}, the dataset of {self.path}, is missing; put it back, or give its new path: "
                f"{self.problem.command} --resume {self.path} dataset=FILE{elsewhere}"
            )
        return self.problem.dataset_type.load(path)

    @property
    def dataset_path(self) -> Path:
        """The file of the dataset: named in the settings, found relative to the run, or the run's own."""
        if self.settings.dataset is None:
            return self.path / DATASET
        path, relative = Path(self.settings.dataset), self.record.read().get("dataset_path")
        moved = self.path / str(relative)
        return moved if relative is not None and not path.is_file() and moved.is_file() else path

    # What it has learned

    def load_agent(self, checkpoint: str | Path | None = None, seed: int = 0) -> tuple[Agent, Checkpoint]:
        """The agent of the last checkpoint or of another one of this run, and the checkpoint's metadata."""
        path = self.checkpoint if checkpoint is None else Path(checkpoint)
        agent, metadata = load_agent(path, self._find_model, seed)
        changes = self.settings.changes_since(metadata.settings, str(path))
        if changes:
            raise CheckpointError(f"{path} does not belong to {self.path}: {listed(changes)}")
        return agent, metadata

    def _find_model(self, name: str) -> Registration:
        try:
            return find(name)
        except RegistryError as error:
            origin = self.record.read().get("model_origin")
            raise RegistryError(f"{error} (the run's model came from {origin})") from None

    @property
    def step(self) -> int:
        """Training steps of the last checkpoint."""
        return load_checkpoint(self.checkpoint, with_tensors=False)[0].step

    @property
    def finished(self) -> bool:
        """Whether it has been trained to the end, and its last checkpoint is of that step."""
        return self.complete.exists() and self.checkpoint.is_file() and self.step >= (self.num_steps or 0)

    @property
    def num_steps(self) -> int | None:
        """The planned number of training steps."""
        return self.record.read().get("num_steps")

    # Training

    @cached_property
    def trainer(self) -> "Trainer":
        """The learner and its data, as the last checkpoint left them."""
        from qrl.agents.runs.trainer import Trainer

        self._find_model(self.settings.model.name)
        return Trainer.restore(self.settings, self.dataset, self.checkpoint)

    @property
    def columns(self) -> list[str]:
        """Those of metrics.csv."""
        return ["step", *self.trainer.learner.scalars, *TIMES, *self.problem.scored(self.settings, self.dataset)]

    def train(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Scalars]:
        """Train to the end, or until `stop()`, and yield each row of metrics.

        Both end with a checkpoint, and so does leaving the loop over the rows.
        """
        with locked(self.path, RunError):
            for folder in (self.path, self._kept):
                remove_leftovers(folder)
            if self.step > self.trainer.learner.steps_done:
                raise RunError(f"{self.path} has been trained to step {self.step} meanwhile; resume it again")
            if self.step < self.trainer.learner.steps_done:  # interrupted: repeat what came after the checkpoint
                del self.trainer
            learner = self.trainer.learner
            if learner.steps_done == learner.num_steps and self.complete.exists():
                return
            self.complete.unlink(missing_ok=True)  # of an extended run, or of another checkpoint
            if learner.steps_done > 0:
                self.record.note_resumed(learner.steps_done)
            columns = self.metrics.start(self.columns, learner.steps_done, self.settings.log_every)
            try:
                with self.trackers(learner.steps_done + 1) as trackers:
                    # Everything is on disk before the trackers end: that may take a while, and be interrupted.
                    try:
                        yield from self._steps(stop, trackers, columns)
                    except GeneratorExit:  # the caller has left the loop, between two steps
                        self._save()
                        raise
                    if learner.steps_done == learner.num_steps:
                        self._mark_complete()
            except TrainingError as error:
                raise TrainingError(
                    f"model {self.settings.model.name}: {error}; {self.checkpoint} keeps the last good state"
                ) from None
            except OSError as error:
                raise RunError(f"{self.path} cannot be written: {error.strerror or error}") from error

    def trackers(self, first_step: int | None = None) -> "AbstractContextManager[list[Tracker]]":
        """The trackers that the settings name; `first_step`: of the training that follows."""
        return open_trackers(self.settings.logger, Tracked(self.path, self.record, self.recorded_settings, first_step))

    def _steps(self, stop: Callable[[], bool], trackers: list[Tracker], columns: list[str]) -> Iterator[Scalars]:
        settings, learner = self.settings, self.trainer.learner
        scored = self.problem.scored(settings, self.dataset)
        clock = Clock(learner.steps_done)
        while learner.steps_done < learner.num_steps and not stop():
            step = learner.steps_done + 1
            last = step == learner.num_steps
            evaluate = last or step % settings.evaluate_every == 0
            log = evaluate or step % settings.log_every == 0
            try:
                scalars = learner.step(log)
            except BaseException:  # interrupted, say: half a step may have been done
                del self.trainer  # the next training repeats it from the checkpoint
                raise
            if log:
                row = {"step": step, **scalars, **clock.times(step)}
                if evaluate:
                    row |= self.trainer.score()
                self.metrics.append(columns, row)
                for tracker in trackers:
                    tracker.log(tags(row, scored), step)
                yield row
                clock = Clock(step)
            if last or step % settings.checkpoint_every == 0:
                self._save()
        if learner.steps_done < learner.num_steps:
            self._save()

    @property
    def notices(self) -> list[str]:
        """What a user may want to know before training."""
        return [*self.problem.notices(self.settings, self.dataset), *self.trainer.learner.notices()]

    # Files

    def _save(self) -> None:
        step, keep = self.trainer.learner.steps_done, self.settings.checkpoint_keep
        if keep is not None and step and step % (keep * self.settings.checkpoint_every) == 0:
            # First, so that a kill in between does not lose it.
            self.trainer.save(self._kept / f"step-{step:08d}.safetensors")
        self.trainer.save(self.checkpoint)

    @property
    def recorded_settings(self) -> dict[str, Any]:
        """The settings as used: for data of the user's own, without those that data is collected with."""
        own_data = self.problem.made_from(self.dataset) is None
        values: dict[str, Any] = self.settings.model_dump(exclude=DATA_GROUPS if own_data else None)
        return values

    def _write_config(self) -> None:
        with atomic_write(self.config) as file:
            file.write(dump_yaml(self.recorded_settings).encode())

    def _facts(self) -> dict[str, Any]:
        dataset = self.settings.dataset
        return {
            "command": self.problem.command,
            "dataset": repr(self.dataset),
            "dataset_hash": self.dataset.content_hash,
            "dataset_path": None if dataset is None else relative_path(Path(dataset), self.path),
            "model_origin": find(self.settings.model.name).origin,
            "learner_origin": find_learner(self.settings.learner.name).origin,
            "num_steps": self.trainer.learner.num_steps,
        }

    def _mark_complete(self) -> None:
        """Write the last row of metrics as the result of the run."""
        row = {key: value for key, value in self.metrics.last().items() if math.isfinite(value)}
        with atomic_write(self.complete) as file:
            file.write(json.dumps(row, indent=2).encode())
