"""The folder of a new run."""

import shutil
from pathlib import Path

from qrl.agents.errors import RunError
from qrl.agents.runs.settings import RunSettings
from qrl.common.locks import locked

CONFIG = "config.yaml"  # the file that makes a folder a training run


def check_folder(settings: RunSettings, force: bool) -> None:
    """Refuse a folder that cannot hold the new run; an existing run may be deleted with `force`."""
    path = Path(str(settings.run))
    try:
        _check(path, settings.dataset, force)
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
    elif path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise RunError(f"{path} exists and is not a training run; name another folder with run=...")


def make_folder(settings: RunSettings, force: bool) -> None:
    """Make an empty folder, and with `force` delete the run that is in it."""
    check_folder(settings, force)  # again: another process may have made a run in it meanwhile
    path = Path(str(settings.run))
    try:
        if (path / CONFIG).is_file():
            with locked(path, RunError):
                shutil.rmtree(path)
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be created: {error.strerror}") from error
