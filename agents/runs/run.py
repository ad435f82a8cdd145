"""A training run: a folder with settings, metrics and checkpoints, and the loop that trains its learner."""

import json
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qrl.agents.errors import CheckpointError, RunError, TrainingError
from qrl.agents.planning.agent import Agent, load_agent
from qrl.agents.runs.checkpoint import Checkpoint, load_checkpoint
from qrl.agents.runs.metrics_file import MetricsFile
from qrl.agents.runs.problems import PROBLEMS, problem_of
from qrl.agents.runs.settings import DATA_GROUPS, RunSettings, differences
from qrl.common.errors import ConfigError, FileError
from qrl.common.files import atomic_write, read_text
from qrl.common.locks import locked
from qrl.common.settings import dump_yaml, read_config
from qrl.common.versions import versions
from qrl.envs.errors import DatasetError
from qrl.errors import RegistryError
from qrl.registry import Registration, find

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from qrl.agents.runs.trainer import Trainer

Row = dict[str, float]
EXTENDABLE = ("epochs", "min_steps")  # keys of the learner that --resume may raise


class Run:
    """A run on disk, finished or not: `train` continues it, `load_agent` gives what it has learned."""

    def __init__(self, path: str | Path, settings: RunSettings) -> None:
        self.path = Path(path)
        self.settings: Any = settings
        self.problem = problem_of(settings)
        self.config = self.path / "config.yaml"
        self.facts = self.path / "run.json"
        self.metrics = MetricsFile(self.path / "metrics.csv")
        self.tensorboard = self.path / "tensorboard"
        self.checkpoint = self.path / "checkpoint.safetensors"
        self.complete = self.path / "COMPLETE"

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

        settings = resolve(settings)
        problem = problem_of(settings)
        if dataset is None:
            file = settings.dataset
            dataset = problem.collect(settings) if file is None else problem.dataset.load(file)
        settings = settings.with_data(problem.made_from(dataset) or settings.data)
        assert settings.run is not None
        run = cls(settings.run, settings)
        run.dataset = dataset
        if init is None:
            run.trainer = Trainer.build(settings, dataset)
        else:
            run.trainer = Trainer.warm_start(settings, dataset, cls.open(init).checkpoint)
        return run

    @classmethod
    def start(
        cls, settings: RunSettings, *, dataset: Any = None, force: bool = False, init: str | Path | None = None
    ) -> "Run":
        """A new run in its folder, with a checkpoint of its initial weights; the arguments are those of `prepare`."""
        run = cls.prepare(settings, dataset, init)
        run._make_folder(force)
        try:
            if run.settings.dataset is None:
                run.dataset.save(run.path / "dataset.npz")
            run._write_facts(init=None if init is None else str(init))
            run._save()
            run._write_config()
        except BaseException:  # also when interrupted: a half-made run helps nobody
            shutil.rmtree(run.path, ignore_errors=True)
            raise
        return run

    @classmethod
    def open(cls, path: str | Path, command: str | None = None) -> "Run":
        """An existing run; `command`: refuse runs of other commands."""
        config = Path(path) / "config.yaml"
        if not config.is_file():
            raise RunError(f"{path} is no training run: it has no config.yaml")
        values = read_config(str(config))
        # Release 0.1 did not record the command.
        unrecorded = "train-graph" if "graph" in values else "train-agent"
        made_by = _read_json(Path(path) / "run.json").get("command", unrecorded)
        if made_by not in PROBLEMS or command not in (None, made_by):
            raise RunError(f"{path} is a run of {made_by}, not of {command or 'a command that this release has'}")
        return cls(path, PROBLEMS[made_by].settings.from_values(values, str(config)))

    @classmethod
    def resume(cls, path: str | Path, changes: dict[str, Any] | None = None, command: str | None = None) -> "Run":
        """A run as its last checkpoint left it.

        changes: `dataset`, the new path of the same data; or `learner` with more `epochs` or `min_steps`, which extend
        the training. The learning rate then follows the cosine of the new length, from where it stands.
        """
        run = cls.open(path, command)
        saved = run.settings
        if changes:
            run.settings = run._changed(changes)
        learner = run.trainer.learner  # checks the data and the checkpoint before anything is written
        planned = saved.learner.num_steps(learner.num_samples)
        if learner.num_steps < planned:
            raise ConfigError(
                f"--resume {path}: training can be extended, not cut: {planned:,} steps were planned, "
                f"now {learner.num_steps:,}"
            )
        if run.settings != saved:
            facts = _read_json(run.facts)
            extensions = facts.get("extensions", [])
            if learner.num_steps > planned:
                extensions = [*extensions, {"step": learner.steps_done, "num_steps_before": planned}]
            run._write_facts(init=facts.get("init"), extensions=extensions or None)
            run._write_config()
        return run

    def _changed(self, changes: dict[str, Any]) -> RunSettings:
        """The settings with those changes that a run may undergo."""
        values = dict(changes)
        dataset, learner = values.pop("dataset", None), dict(values.pop("learner", {}))
        longer = {key: learner.pop(key) for key in EXTENDABLE if key in learner}
        values["learner"] = learner
        refused = differences(self.settings.model_dump(), values, values)
        if refused:
            raise ConfigError(
                f"--resume {self.path} cannot change settings: {'; '.join(refused)}; leave them out, or start a new run"
            )
        update: dict[str, Any] = {"learner": self.settings.learner.model_copy(update=longer)}
        if dataset is not None:
            update["dataset"] = str(Path(dataset).absolute())
        settings: RunSettings = self.settings.model_copy(update=update)
        return settings

    # Data

    @cached_property
    def dataset(self) -> Any:
        """The data that the run was trained on."""
        path = self.dataset_path
        if not path.is_file():
            raise DatasetError(
                f"{path}, the dataset of {self.path}, is missing; put it back, or give its new path: "
                f"{self.problem.command} --resume {self.path} dataset=FILE, or evaluate-planning --dataset FILE"
            )
        return self.problem.dataset.load(path)

    @property
    def dataset_path(self) -> Path:
        """The file of the dataset: named in the settings, found relative to the run, or the run's own."""
        if self.settings.dataset is None:
            return self.path / "dataset.npz"
        path, relative = Path(self.settings.dataset), _read_json(self.facts).get("dataset_path")
        moved = self.path / str(relative)
        return moved if relative is not None and not path.is_file() and moved.is_file() else path

    # What it has learned

    def load_agent(self, checkpoint: str | Path | None = None, seed: int = 0) -> tuple[Agent, Checkpoint]:
        """The agent of the last checkpoint or of another one of this run, and the checkpoint's metadata."""
        path = self.checkpoint if checkpoint is None else Path(checkpoint)
        agent, metadata = load_agent(path, self._find_model, seed)
        changes = differences(metadata.settings, self.settings.fixed, self.settings.fixed)
        if changes:
            raise CheckpointError(f"{path} is not of {self.path}: {'; '.join(changes)}")
        return agent, metadata

    def _find_model(self, name: str) -> Registration:
        try:
            return find(name)
        except RegistryError as error:
            raise RegistryError(
                f"{error} (the run's model came from {_read_json(self.facts).get('model_origin')})"
            ) from None

    @property
    def num_steps(self) -> int | None:
        """The planned number of training steps."""
        return _read_json(self.facts).get("num_steps")

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
        return ["step", *self.trainer.learner.scalars, "steps_per_second", *self.problem.scored(self.dataset)]

    def train(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Row]:
        """Train to the end, or until `stop()`, and yield each row of metrics; both end with a checkpoint."""
        from torch.utils.tensorboard import SummaryWriter

        learner = self.trainer.learner
        with locked(self.path, RunError):
            on_disk = load_checkpoint(self.checkpoint, with_tensors=False)[0].step
            if on_disk != learner.steps_done:
                raise RunError(f"{self.path} has been trained to step {on_disk} meanwhile; resume it again")
            if learner.steps_done == learner.num_steps and self.complete.exists():
                return
            self.complete.unlink(missing_ok=True)  # an extended run
            self.metrics.start(self.columns, learner.steps_done)
            try:
                with closing(SummaryWriter(str(self.tensorboard), purge_step=learner.steps_done + 1)) as writer:
                    yield from self._steps(stop, writer)
            except TrainingError as error:
                raise TrainingError(
                    f"model {self.settings.model.name}: {error}; {self.checkpoint} keeps the last good state"
                ) from None
            except OSError as error:
                raise RunError(f"{self.path} cannot be written: {error.strerror or error}") from error
            if learner.steps_done == learner.num_steps:
                self._mark_complete()

    def _steps(self, stop: Callable[[], bool], writer: "SummaryWriter") -> Iterator[Row]:
        settings, learner, columns = self.settings, self.trainer.learner, self.columns
        clock, clock_step = time.monotonic(), learner.steps_done
        while learner.steps_done < learner.num_steps and not stop():
            step = learner.steps_done + 1
            last = step == learner.num_steps
            evaluate = last or step % settings.evaluate_every == 0
            log = evaluate or step % settings.log_every == 0
            scalars = learner.step(log)
            if log:
                elapsed = time.monotonic() - clock
                row = {"step": step, **scalars, "steps_per_second": (step - clock_step) / max(elapsed, 1e-9)}
                if evaluate:
                    row |= self.trainer.score()
                self.metrics.append(columns, row)
                for name, value in row.items():
                    writer.add_scalar(name, value, step)
                yield row
                clock, clock_step = time.monotonic(), step
            if last or step % settings.checkpoint_every == 0:
                self._save()
        if learner.steps_done < learner.num_steps:
            self._save()

    # Files

    def _make_folder(self, force: bool) -> None:
        """Make an empty folder; an existing run is refused, or deleted with `force`."""
        try:
            if self.config.is_file():
                if not force:
                    raise RunError(
                        f"{self.path} holds a training run; continue it with --resume {self.path}, name another folder "
                        "with run=..., or delete it with --force"
                    )
                with locked(self.path, RunError):
                    shutil.rmtree(self.path)
            elif self.path.exists() and not (self.path.is_dir() and not any(self.path.iterdir())):
                raise RunError(f"{self.path} exists and is no training run; name another folder with run=...")
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{self.path} cannot be made: {error.strerror}") from error

    def _save(self) -> None:
        self.trainer.save(self.checkpoint)
        step, keep = self.trainer.learner.steps_done, self.settings.checkpoint_keep
        if keep is not None and step and step % (keep * self.settings.checkpoint_every) == 0:
            with atomic_write(self.path / "checkpoints" / f"step-{step:08d}.safetensors") as file:
                file.write(self.checkpoint.read_bytes())

    def _write_config(self) -> None:
        """The settings as used: of data in a file, those that it was made from, if any."""
        own_data = self.problem.made_from(self.dataset) is None
        values = self.settings.model_dump(exclude=DATA_GROUPS if own_data else None)
        with atomic_write(self.config) as file:
            file.write(dump_yaml(values).encode())

    def _write_facts(self, **facts: Any) -> None:
        """What made the run."""
        dataset = self.settings.dataset
        values = {
            "command": self.problem.command,
            "dataset": repr(self.dataset),
            "dataset_hash": self.dataset.content_hash,
            "dataset_path": None if dataset is None else _relative(Path(dataset), self.path),
            "model_origin": find(self.settings.model.name).origin,
            "num_steps": self.trainer.learner.num_steps,
            **{key: value for key, value in facts.items() if value is not None},
            "versions": versions("torch"),
            "git_commit": _git_commit(),
        }
        with atomic_write(self.facts) as file:
            file.write(json.dumps(values, indent=2).encode())

    def _mark_complete(self) -> None:
        """Write the last row of metrics as the result of the run."""
        row = {key: value for key, value in self.metrics.last().items() if math.isfinite(value)}
        with atomic_write(self.complete) as file:
            file.write(json.dumps(row, indent=2).encode())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(read_text(path)))
    except (FileError, ValueError, TypeError):
        return {}


def _relative(path: Path, folder: Path) -> str | None:
    try:
        return os.path.relpath(path, folder.absolute())
    except ValueError:  # on another drive
        return None


def _git_commit() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    run = subprocess.run([git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S603
    return run.stdout.strip() or None
