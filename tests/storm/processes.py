"""Commands in forked processes: starting Python with torch takes seconds, forking one that has them, milliseconds."""

import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.storm.report import Verdict

SECONDS = 10.0  # that a command on these small files may take
BYTES = 10**9  # of memory that it may take beside that of the imported modules
Main = Callable[[Sequence[str]], int]


def preload() -> None:
    """Import what the commands would, without a thread or a tensor operation: the process stays safe to fork."""
    import torch
    import torch._dynamo
    import torch.utils.tensorboard
    from tqdm import tqdm

    import qrl.agents.learners.registry
    import qrl.agents.studies.sweep
    import qrl.registry

    tqdm.monitor_interval = 0  # no thread
    torch.set_num_threads(1)
    qrl.agents.learners.registry.list_learners()
    qrl.registry.list_q_models()


@dataclass(frozen=True)
class Ended:
    """How a process ended; `status` is minus the signal that ended it."""

    status: int
    seconds: float
    memory: int
    out: str
    err: str

    @property
    def fault(self) -> Verdict | None:
        """What no command may do, whatever happens to it."""
        if self.status == -signal.SIGALRM or self.seconds > SECONDS:
            return Verdict.SLOW
        if self.memory > BYTES:
            return Verdict.BIG
        if "Traceback" in self.err or "Exception" in self.err or self.status in (-signal.SIGSEGV, -signal.SIGABRT):
            return Verdict.TRACEBACK
        return None

    @property
    def refused(self) -> bool:
        """With one error, as for a user's mistake."""
        return self.status == 2 and len(re.findall("^error: ", self.err, re.MULTILINE)) == 1

    def __str__(self) -> str:
        return f"status {self.status} after {self.seconds:.1f} s, {self.memory:,} bytes\n{self.out}\n{self.err}"


class Forked:
    """A command in a process of its own, in the folder `cwd`, with `arm` called before it."""

    def __init__(self, main: Main, argv: Sequence[str], cwd: Path, arm: Callable[[], None] = lambda: None) -> None:
        self._out, self._err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115 - closed when read
        self._baseline = _resident()
        self._start = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(main, argv, cwd, arm)

    def _run(self, main: Main, argv: Sequence[str], cwd: Path, arm: Callable[[], None]) -> None:
        status = 1
        try:
            for file, descriptor in ((self._out, 1), (self._err, 2)):
                os.dup2(file.fileno(), descriptor)
            sys.stdout, sys.stderr = (os.fdopen(descriptor, "w", closefd=False) for descriptor in (1, 2))
            default_signals()
            os.chdir(cwd)
            arm()
            status = main(list(argv))
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except KeyboardInterrupt:  # just before or after the command
            status = 130
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def kill(self, number: int) -> None:
        os.kill(self.pid, number)

    def poll(self) -> Ended | None:
        """How it ended, if it has."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        return self._ended(status, usage) if pid else None

    def wait(self, seconds: float = SECONDS) -> Ended:
        """End it by SIGALRM if it takes longer."""
        while (ended := self.poll()) is None:
            if time.monotonic() - self._start > seconds:
                self.kill(signal.SIGALRM)
                _, status, usage = os.wait4(self.pid, 0)
                return self._ended(status, usage)
            time.sleep(0.002)
        return ended

    def _ended(self, status: int, usage: resource.struct_rusage) -> Ended:
        memory = usage.ru_maxrss * 1024 - self._baseline
        seconds = time.monotonic() - self._start
        return Ended(os.waitstatus_to_exitcode(status), seconds, memory, _text(self._out), _text(self._err))


def run(main: Main, argv: Sequence[str], cwd: Path) -> Ended:
    return Forked(main, argv, cwd).wait()


def default_signals() -> None:
    """As in a command that a shell starts: a job in the background ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _text(file: IO[Any]) -> str:
    file.seek(0)
    with file:
        return str(file.read().decode("utf-8", "replace"))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
