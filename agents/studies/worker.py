"""One run of a study, from its settings to its evaluation, in a worker process of a sweep."""

import os
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qrl.agents.errors import RunError
from qrl.agents.runs.folder import CONFIG
from qrl.agents.runs.problems import PROBLEMS
from qrl.agents.runs.run import Run
from qrl.agents.runs.settings import DATA_GROUPS, RunSettings, differences
from qrl.agents.studies.folder import EVALUATION
from qrl.agents.studies.scoring import SCORERS
from qrl.common.errors import UserError
from qrl.common.locks import locked
from qrl.common.plugins import load_plugin
from qrl.common.text import listed

_PATIENCE = 300  # seconds to wait for a run folder that a dying worker still holds
# What may differ between a run and its plan; data is identified by the name of its file.
_FREE = {"run", "dataset", "threads", "compile", "logger", *DATA_GROUPS}


@dataclass(frozen=True)
class Job:
    """A run for a worker process to compute: plain values only."""

    command: str
    settings: dict[str, Any]  # of the command, with the paths of the run and its dataset
    plugins: tuple[str, ...] = ()


_ORPHANED = threading.Event()
_BUSY = threading.Lock()


def serve(parent: int) -> None:
    """Prepare a process of this machine to be a worker of the sweep `parent`, and to end with it, however it ends."""
    # Ctrl-C reaches all processes of a terminal; the sweep itself stops its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        _ORPHANED.set()
        with _BUSY:  # the current run has saved its checkpoint
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def attempt(job: Job) -> str | None:
    """Start or resume the run and evaluate it; returns what went wrong."""
    try:
        with _BUSY:
            _run(job)
    except UserError as error:
        return str(error)
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    return None


def _run(job: Job) -> None:
    for module in job.plugins:
        load_plugin(module)
    settings = PROBLEMS[job.command].settings_type.from_values(job.settings, "study")
    assert settings.run is not None
    path = Path(settings.run)
    if path.is_dir():
        _wait_until_free(path)
    if (path / CONFIG).is_file():
        check_settings(path, settings)
        run = Run.resume(path, {"dataset": settings.dataset}, job.command)
    else:
        run = Run.start(settings)
    for _ in run.train(stop=_ORPHANED.is_set):
        pass
    if not run.finished:
        raise RunError(f"stopped at step {run.trainer.learner.steps_done}, because the sweep has ended")
    SCORERS[job.command].evaluate(run, path / EVALUATION)


def _wait_until_free(path: Path) -> None:
    for _ in range(_PATIENCE):
        try:
            with locked(path, RunError):
                return
        except RunError:
            time.sleep(1)
    raise RunError(f"{path} is in use by another process")


def check_settings(path: Path, settings: RunSettings) -> None:
    """Refuse a run whose settings are not those of the plan; `settings.dataset` is the planned file."""
    saved, planned = (_identity(values) for values in (Run.open(path).settings, settings))
    changes = differences(saved, planned)
    if changes:
        raise RunError(f"{path} was trained with other settings: {listed(changes)}; delete it, or name another out=...")


def _identity(settings: RunSettings) -> dict[str, Any]:
    data = None if settings.dataset is None else Path(settings.dataset).name
    return settings.model_dump(exclude=_FREE) | {"dataset": data}
