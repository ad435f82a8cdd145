"""One run of a study, from its settings to its evaluation: what a sweep does in its worker processes."""

import os
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from shutil import rmtree
from typing import Any

from qrl.agents.errors import RunError
from qrl.agents.runs.run_folder import RunFolder
from qrl.agents.runs.settings import RunSettings, differences
from qrl.agents.runs.training_run import train
from qrl.agents.studies.folder import EVALUATION
from qrl.agents.studies.kinds import KINDS
from qrl.common.errors import UserError
from qrl.registry import load_plugin

_PATIENCE = 300  # seconds to wait for a run folder that a dying worker still holds
_FREE = {"run", "dataset", "threads", "compile"}  # what may differ between a run and its plan


@dataclass(frozen=True)
class Task:
    """What a worker process is told: plain values only."""

    command: str
    settings: dict[str, Any]  # of the command, with the places of the run and its dataset
    plugins: tuple[str, ...] = ()


_ORPHANED = threading.Event()
_BUSY = threading.Lock()


def serve(parent: int) -> None:
    """Prepare a process of this machine to be a worker of the sweep `parent`, and to end with it, however it ends."""
    # Ctrl-C reaches all processes of a terminal; the sweep itself decides what becomes of its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        _ORPHANED.set()
        with _BUSY:  # the run that this worker is at has been saved
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def attempt(task: Task) -> str | None:
    """Do the run, or what is left of it; returns what went wrong."""
    try:
        with _BUSY:
            _run(task)
    except UserError as error:
        return str(error)
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    return None


def _run(task: Task) -> None:
    for module in task.plugins:
        load_plugin(module)
    kind = KINDS[task.command]
    settings = kind.settings.from_values(task.settings, "study")
    assert settings.run is not None
    folder = RunFolder(settings.run)
    if folder.path.is_dir():
        _wait_until_free(folder)
    if folder.config.is_file():
        check_settings(folder, settings)
        folder, training = kind.part("TRAINING").resume(folder.path)
    else:
        rmtree(folder.path, ignore_errors=True)  # what a kill left of one that had hardly begun
        folder, training = kind.part("TRAINING").start(settings)
    for _ in train(folder, training, stop=_ORPHANED.is_set):
        pass
    if not folder.complete.exists():
        raise RunError(f"stopped at step {training.learner.step}, because the sweep is gone")
    kind.part("evaluate")(folder.path, folder.path / EVALUATION)


def _wait_until_free(folder: RunFolder) -> None:
    for _ in range(_PATIENCE):
        try:
            with folder.lock():
                return
        except RunError:
            time.sleep(1)
    raise RunError(f"{folder.path} is in use by another process")


def check_settings(folder: RunFolder, settings: RunSettings) -> None:
    """Refuse a run that was made with other settings than the plan has now."""
    wanted = settings.model_dump(exclude=_FREE)
    changed = differences(folder.read_config(), wanted, wanted)
    if changed:
        raise RunError(
            f"{folder.path} was trained with other settings: {'; '.join(changed)}; delete it, or name another out=..."
        )
