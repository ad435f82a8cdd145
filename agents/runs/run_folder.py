"""A training run on disk: settings, metrics, checkpoint, and a mark when it is complete."""

import csv
import fcntl
import io
import json
import math
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qrl.agents.runs.settings import RunSettings
from qrl.agents.errors import RunError
from qrl.common.errors import FileError
from qrl.errors import RegistryError
from qrl.common.files import atomic_write, read_text
from qrl.common.settings import dump_yaml, read_config
from qrl.common.versions import versions
from qrl.registry import Registration, find


class RunFolder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.facts = self.path / "run.json"
        self.dataset = self.path / "dataset.npz"
        self.metrics = self.path / "metrics.csv"
        self.tensorboard = self.path / "tensorboard"
        self.checkpoint = self.path / "checkpoint.safetensors"
        self.complete = self.path / "COMPLETE"

    @classmethod
    def new(cls, path: str | Path, force: bool) -> "RunFolder":
        """An empty folder for a run; an existing run is refused, or deleted with `force`."""
        folder = cls(path)
        try:
            if folder.config.is_file():
                if not force:
                    raise RunError(
                        f"{path} holds a training run; go on with --resume {path}, name another with run=..., "
                        "or delete it with --force"
                    )
                with folder.lock():
                    shutil.rmtree(folder.path)
            elif folder.path.exists() and not (folder.path.is_dir() and not any(folder.path.iterdir())):
                raise RunError(f"{path} exists and is no training run; name another folder with run=...")
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{path} cannot be made: {error.strerror}") from error
        return folder

    @classmethod
    def existing(cls, path: str | Path) -> "RunFolder":
        folder = cls(path)
        if not folder.config.is_file():
            raise RunError(f"{path} is no training run: it has no config.yaml")
        return folder

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out; the lock goes with the process, however it ends."""
        try:
            file = (self.path / ".lock").open("w")
        except OSError as error:
            raise RunError(f"{self.path} cannot be written: {error.strerror}") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RunError(f"{self.path} is in use by another process") from None
            yield

    def write_config(self, values: dict[str, Any]) -> None:
        with atomic_write(self.config) as file:
            file.write(dump_yaml(values).encode())

    def read_config(self) -> dict[str, Any]:
        return read_config(str(self.config))

    def check_kind(self, settings: type[RunSettings]) -> None:
        """Refuse a run of another command."""
        if settings.DATA not in self.read_config():
            raise RunError(f"{self.path} is no run of {settings.COMMAND}")

    def read_facts(self) -> dict[str, Any]:
        try:
            return dict(json.loads(read_text(self.facts)))
        except (FileError, ValueError):
            return {}

    def find_model(self, name: str) -> Registration:
        """The registration of the run's model; if it is unknown, the message says where it came from."""
        try:
            return find(name)
        except RegistryError as error:
            raise RegistryError(
                f"{error} (the run's model came from {self.read_facts().get('model_origin')})"
            ) from None

    def find_dataset(self) -> Path:
        """The file that the run was trained on: named in the settings, or its own."""
        named = self.read_config().get("dataset")
        return self.dataset if named is None else Path(str(named))

    def write_facts(self, **facts: Any) -> None:
        """What the run was made with."""
        known = {**facts, "versions": versions("torch"), "git_commit": _git_commit()}
        with atomic_write(self.facts) as file:
            file.write(json.dumps(known, indent=2).encode())

    def mark_complete(self) -> None:
        """Write the last row of metrics as the result of the run."""
        last = {key: value for key, value in self.last_metrics().items() if math.isfinite(value)}
        with atomic_write(self.complete) as file:
            file.write(json.dumps(last, indent=2).encode())

    def last_metrics(self) -> dict[str, float]:
        try:
            *_, last = self._read_metrics()
            return {key: float(value) for key, value in last.items() if value}
        except (ValueError, TypeError):
            raise FileError(f"{self.metrics} is damaged") from None

    # Metrics: one CSV row for each logged step.

    def start_metrics(self, columns: Sequence[str], last_step: int) -> None:
        """Begin the file, or cut it back to what was written up to `last_step`."""
        # A kill may have torn the last line: it lacks columns, or its step is beyond the checkpoint.
        rows = self._read_metrics() if self.metrics.exists() else []
        rows = [row for row in rows if None not in row.values() and int(row["step"]) <= last_step]
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        with atomic_write(self.metrics) as file:
            file.write(text.getvalue().encode())

    def seconds(self) -> float:
        """The time of all logged training steps."""
        last, total = 0, 0.0
        try:
            for row in self._read_metrics():
                total += (int(row["step"]) - last) / float(row["steps_per_second"])
                last = int(row["step"])
        except (ValueError, KeyError, TypeError, ZeroDivisionError):
            raise FileError(f"{self.metrics} is damaged") from None
        return total

    def _read_metrics(self) -> list[dict[str, Any]]:
        return list(csv.DictReader(io.StringIO(read_text(self.metrics, max_bytes=2**30))))

    def append_metrics(self, columns: Sequence[str], row: dict[str, float]) -> None:
        try:
            with self.metrics.open("a") as file:
                csv.DictWriter(file, columns, lineterminator="\n").writerow(row)
        except OSError as error:
            raise FileError(f"{self.metrics} cannot be written: {error.strerror or error}") from error


def _git_commit() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    run = subprocess.run([git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S603
    return run.stdout.strip() or None
