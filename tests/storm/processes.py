"""Commands in forked processes: starting Python with torch takes seconds, forking one that has them, milliseconds."""

import importlib
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.storm.report import Verdict

SECONDS = 10.0  # of processor time that a command on these small files may take
PATIENCE = 60.0  # seconds that it may take without using them, because the machine may be busy
BYTES = 10**9  # of memory that it may take beside that of the imported modules
_HEAVY = (
    *("torch._dynamo", "torch.utils.tensorboard", "matplotlib.pyplot"),
    *("qrl.agents.studies.report", "qrl.agents.studies.sweep"),
)
Main = Callable[[Sequence[str]], int]


def preload() -> None:
    """Import what the commands would, without a thread or a tensor operation: the process stays safe to fork."""
    import torch
    from tqdm import tqdm

    import qrl

    for module in _HEAVY:
        importlib.import_module(module)
    tqdm.monitor_interval = 0  # no thread
    tqdm.set_lock(threading.RLock())  # its own is shared by forked processes, and a killed one would keep it for ever
    torch.set_num_threads(1)
    qrl.list_learners()
    qrl.list_q_models()


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
        if self.status == -signal.SIGALRM:
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


class Limit:
    """The time that a process may take from now on."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._start, self._used = time.monotonic(), self._processor_seconds()

    def _processor_seconds(self) -> float:
        times = self._stat.read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    @property
    def exceeded(self) -> bool:
        elapsed = time.monotonic() - self._start
        return elapsed > PATIENCE or (elapsed > SECONDS and self._processor_seconds() - self._used > SECONDS)


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

    def wait(self) -> Ended:
        """End it by SIGALRM if it takes too long."""
        limit = Limit(self.pid)
        while (ended := self.poll()) is None:
            if limit.exceeded:
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
