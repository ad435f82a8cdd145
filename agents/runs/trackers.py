"""Trackers: TensorBoard, Weights & Biases and Trackio get copies of a run's metrics.

metrics.csv and the checkpoint are the run itself, and must be written. A tracker of another project that fails during
training costs its copy only. Nothing here imports a tracker at the top.
"""

import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import BeforeValidator, Field

from qrl.agents.errors import RunError
from qrl.agents.runs.record import RunRecord
from qrl.common.errors import ConfigError
from qrl.common.text import clip

PROJECT = "qrl"  # under which other projects' trackers list the runs
TrackerName = Literal["tensorboard", "wandb", "trackio"]


def _names(value: Any) -> Any:
    """Names separated by commas, as on the command line; an empty value names none."""
    if value is None:
        return ()
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


TrackerNames = Annotated[tuple[TrackerName, ...], BeforeValidator(_names), Field(max_length=3)]


@dataclass(frozen=True)
class Tracked:
    """A run as trackers know it."""

    folder: Path
    record: RunRecord
    settings: dict[str, Any]
    first_step: int | None = None  # of the training that follows: later values of an earlier one are void

    @property
    def identity(self) -> str:
        """The name of the run, the same after every resume; recorded on first use."""
        recorded: str | None = self.record.read().get("tracker_run")
        if recorded is None:
            name = re.sub(r"[^\w-]", "-", self.folder.resolve().name, flags=re.ASCII)[:80]
            recorded = f"{name}-{secrets.token_hex(4)}"
            self.record.update({"tracker_run": recorded})
        return recorded


class Tracker(Protocol):
    def log(self, scalars: Mapping[str, float], step: int) -> None:
        """Add a point to each of the curves, by tag."""

    def report(self, title: str, text: str, values: Mapping[str, float], step: int) -> None:
        """Show the results of an evaluation: values that exist once, and the table of them."""

    def close(self) -> None: ...


class WandbTracker:
    """Weights & Biases; WANDB_MODE=offline needs no account."""

    def __init__(self, run: Tracked) -> None:
        import wandb

        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            id=run.identity,
            name=run.identity,
            resume="allow",
            reinit="create_new",  # leaves a run of the user's own alone
            dir=run.folder,
            config=run.settings,
            settings=wandb.Settings(console="off"),
        )
        # Its own steps never go back, and a run resumes from its last checkpoint.
        for group in ("train/*", "eval/*"):
            self._run.define_metric(group, step_metric="step")

    def log(self, scalars: Mapping[str, float], step: int) -> None:
        self._run.log({"step": step, **scalars})

    def report(self, title: str, text: str, values: Mapping[str, float], step: int) -> None:
        self._run.summary.update({title: {"step": step, **values}})

    def close(self) -> None:
        self._run.finish()


class TrackioTracker:
    """Trackio, in its local database unless its own variables name a server."""

    def __init__(self, run: Tracked) -> None:
        import trackio

        self._run = trackio.init(
            PROJECT, name=run.identity, resume="allow", config=run.settings, embed=False, auto_log_cpu=False
        )

    def log(self, scalars: Mapping[str, float], step: int) -> None:
        self._run.log(dict(scalars), step=step)

    def report(self, title: str, text: str, values: Mapping[str, float], step: int) -> None:
        import trackio

        self._run.log({title: trackio.Markdown(text)}, step=step)

    def close(self) -> None:
        self._run.finish()


class Guarded:
    """A tracker whose failure is a warning: it gets nothing more, and training continues."""

    def __init__(self, name: str, tracker: Tracker) -> None:
        self._name, self._tracker = name, tracker
        self._failed = False

    def log(self, scalars: Mapping[str, float], step: int) -> None:
        self._try(lambda: self._tracker.log(scalars, step))

    def report(self, title: str, text: str, values: Mapping[str, float], step: int) -> None:
        self._try(lambda: self._tracker.report(title, text, values, step))

    def close(self) -> None:
        self._try(self._tracker.close)

    def _try(self, use: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            use()
        except Exception as error:  # whatever another project's code raises
            self._failed = True
            print(
                f"warning: {self._name} has failed and gets nothing more of this run until it is resumed "
                f"({type(error).__name__}: {clip(error)}); metrics.csv has everything",
                file=sys.stderr,
                flush=True,
            )


def check_installed(names: Sequence[TrackerName]) -> None:
    """Refuse trackers that are not installed, before anything is computed or written."""
    for name in names:
        if find_spec(name) is None:
            raise ConfigError(
                f"logger: {name} is not installed; install it with: pip install -e '.[{name}]', or leave it out"
            )


@contextmanager
def open_trackers(names: Sequence[TrackerName], run: Tracked) -> Iterator[list[Tracker]]:
    """The trackers of a run, which continue what they have of it."""
    with ExitStack() as stack:
        yield [stack.enter_context(_open(name, run)) for name in dict.fromkeys(names)]


def _open(name: TrackerName, run: Tracked) -> "AbstractContextManager[Tracker]":
    if name == "tensorboard":
        from qrl.agents.runs.events import EventFile

        return closing(EventFile(run.folder / "tensorboard", purge_step=run.first_step))
    check_installed([name])
    try:
        tracker = WandbTracker(run) if name == "wandb" else TrackioTracker(run)
    except Exception as error:
        raise RunError(
            f"logger: {name} cannot be started ({type(error).__name__}: {clip(error)}); make it available, or leave it "
            f"out of logger, also with --resume {run.folder}"
        ) from error
    return closing(Guarded(name, tracker))


def tags(row: Mapping[str, float], scored: Sequence[str]) -> dict[str, float]:
    """A row of metrics.csv by tag: train/ for what the learner does, eval/ for its scores."""
    return {f"{'eval' if key in scored else 'train'}/{key}": value for key, value in row.items() if key != "step"}
