"""The file-system operations of a process, counted through audit events, and its end at the n-th of them.

Every named moment of a run lies before one of its operations: before the folder is created, before a temporary file is
opened, written out or renamed, before a row is appended. Trying all n tries all of them, without hooks in the product.
"""

import os
import random
import re
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_EVENTS = {
    "open": "open",
    "os.mkdir": "mkdir",
    "os.rename": "rename",
    "os.remove": "remove",
    "os.rmdir": "rmdir",
    "os.chmod": "chmod",
    "fsync": "fsync",
}
_TEMPORARY = re.compile(r"\.(.+)\.\w{8}(\.tmp)?")  # names of `atomic_write`


@dataclass
class Operations:
    """Watches the process that installs it; operations outside of `folder` and those of other threads do not count."""

    folder: Path
    log: Path | None = None  # to list the operations in
    at: int | None = None  # number of the operation before which the process is sent the signal
    number: int = signal.SIGKILL
    torn: int | None = None  # seed: first cut the file that is being written to a random length
    count: int = 0
    _writing: tuple[Path, int] | None = field(default=None, init=False)  # last file opened, and its size before

    def install(self) -> None:
        fsync = os.fsync

        def watched(descriptor: int) -> None:
            self._see("fsync", (f"/proc/self/fd/{descriptor}",))
            fsync(descriptor)

        os.fsync = watched  # type: ignore[assignment]
        sys.addaudithook(self._see)

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in _EVENTS or threading.current_thread() is not threading.main_thread():
            return
        path = self._changed(event, args)
        if path is None:
            return
        if self.count == self.at:
            self._end()
        if self.log is not None:
            _append(self.log, f"{_EVENTS[event]} {moment(path, self.folder)}")
        self.count += 1
        self._writing = (path, path.stat().st_size if path.exists() else 0) if event == "open" else None

    def _changed(self, event: str, args: tuple[Any, ...]) -> Path | None:
        """The file or folder that an operation changes, if it is one of ours."""
        target = args[1] if event == "os.rename" else args[0]
        if not isinstance(target, str | os.PathLike) or (event == "open" and not args[2] & _WRITES):
            return None
        path = Path(target).resolve() if event == "fsync" else Path(target).absolute()
        return path if path.is_relative_to(self.folder) else None

    def _end(self) -> None:
        self.count += 1
        if self.torn is not None and self._writing is not None:
            path, before = self._writing
            if path.exists() and path.stat().st_size > before:
                os.truncate(path, random.Random(self.torn).randrange(before, path.stat().st_size))
        os.kill(os.getpid(), self.number)


def moment(path: Path, folder: Path) -> str:
    """What is going on when the path is changed: the start, until there is a run, then a file or the steps between."""
    if not (folder / "run" / "config.yaml").exists():
        return "start"
    if path == folder / "run":
        return "a step"
    temporary = _TEMPORARY.fullmatch(path.name)
    name = temporary[1] if temporary else path.name
    if name.startswith("step-") or name == "checkpoints":
        return "kept checkpoint"
    return "TensorBoard" if "tensorboard" in path.parts else name


def _append(log: Path, line: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)
