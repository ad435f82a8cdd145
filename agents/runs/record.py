"""run.json: which command made a run, from which data and versions, and how it was resumed and extended."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_text
from qrl.common.json_text import parse_json
from qrl.common.settings import PathText
from qrl.common.text import MAX_SHOWN
from qrl.common.versions import versions

_Text = Annotated[str, Field(max_length=MAX_SHOWN)]


class _Facts(BaseModel):
    """The types of the facts that a run reads again; others are for people."""

    model_config = ConfigDict(extra="allow", strict=True)

    command: _Text = ""
    model_origin: _Text | None = None
    learner_origin: _Text | None = None
    dataset_path: PathText | None = None
    num_steps: int | None = None
    tracker_run: Annotated[str, Field(pattern=r"^[\w-]{1,100}$")] | None = None
    resumed: list[dict[str, Any]] = []
    extensions: list[dict[str, Any]] = []


class RunRecord:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any]:
        """The facts of the run; empty where there is no file."""
        if not self.path.exists():
            return {}
        try:
            facts: dict[str, Any] = parse_json(read_text(self.path))
            _Facts.model_validate(facts)
            return facts
        except FileError:
            raise
        except ValueError:  # also of a wrong type
            raise FileError(f"{self.path} is damaged; restore it, or delete it to do without") from None

    def write(self, facts: dict[str, Any]) -> None:
        """Write the facts of a new run, with the versions that make it."""
        self._write(facts | _made_with())

    def update(self, facts: dict[str, Any]) -> None:
        """Change some facts of an existing run."""
        self._write(self.read() | facts)

    def note_resumed(self, step: int) -> None:
        """Record a resume under other versions than before."""
        facts, current = self.read(), _made_with()
        resumed = facts.get("resumed", [])
        last = resumed[-1] if resumed else facts
        if any(last.get(key) != value for key, value in current.items()):
            self._write({**facts, "resumed": [*resumed, {"step": step, **current}]})

    def _write(self, facts: dict[str, Any]) -> None:
        with atomic_write(self.path) as file:
            file.write(json.dumps(facts, indent=2).encode())


def _made_with() -> dict[str, Any]:
    return {"versions": versions("torch"), "git_commit": _git_commit()}


def _git_commit() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    run = subprocess.run([git, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S603
    return run.stdout.strip() or None


def relative_path(path: Path, folder: Path) -> str | None:
    """The path as seen from the folder, so that both can be moved together; None on another drive."""
    try:
        return os.path.relpath(path, folder.absolute())
    except ValueError:
        return None
