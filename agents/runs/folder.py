"""The folder of a new run. Its config is written last: a kill before leaves a folder that the next start replaces."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qrl.agents.errors import RunError
from qrl.agents.runs.settings import RunSettings
from qrl.common.files import is_leftover
from qrl.common.locks import LOCK, locked

CONFIG = "config.yaml"  # the file that makes a folder a training run
RECORD = "run.json"
CHECKPOINT = "checkpoint.safetensors"
DATASET = "dataset.npz"
_HALF_MADE = {LOCK, RECORD, CHECKPOINT, DATASET}  # what a start writes before the config


def check_folder(settings: RunSettings, force: bool) -> None:
    """Refuse a folder that cannot hold the new run; an existing run may be deleted with `force`."""
    path = Path(str(settings.run))
    with _named(path):
        if (path / CONFIG).is_file():
            with locked(path, RunError):
                pass  # not in use
        _check(path, settings.dataset, force)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"{path} cannot be created: {error.strerror}") from error


def _check(path: Path, dataset: str | None, force: bool) -> None:
    if (path / CONFIG).is_file():
        if not force:
            raise RunError(
                f"{path} holds a training run; resume it with --resume {path}, name another folder with run=..., or "
                "delete it with --force"
            )
        if dataset is not None and Path(dataset).resolve().is_relative_to(path.resolve()):
            raise RunError(f"--force would delete {dataset}, the data of the new run; name another folder with run=...")
    elif path.exists() and not (path.is_dir() and _replaceable(path)):
        raise RunError(f"{path} exists and is not a training run; name another folder with run=...")


def _replaceable(path: Path) -> bool:
    """Whether a folder without a config is empty, or what a kill has left of a start."""
    names = {file.name for file in path.iterdir()}
    return not names or (LOCK in names and all(name in _HALF_MADE or is_leftover(name) for name in names))


@contextmanager
def new_folder(settings: RunSettings, force: bool) -> Iterator[None]:
    """An empty folder to write a run into, held while it is written, and deleted if that fails."""
    path = Path(str(settings.run))
    check_folder(settings, force)
    with locked(path, RunError):
        with _named(path):
            _check(path, settings.dataset, force)  # again: another process may just have made a run in it
            _empty(path)
        try:
            yield
        except BaseException:  # also when interrupted: a half-made run helps nobody
            shutil.rmtree(path, ignore_errors=True)
            raise


def _empty(path: Path) -> None:
    """Delete the run in a folder, its config last: until then, `force` deletes it again."""
    files = sorted(path.iterdir(), key=lambda file: file.name == CONFIG)
    for file in files:
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        elif file.name != LOCK:
            file.unlink()
