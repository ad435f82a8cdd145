"""Where runs are computed: processes of this machine (loky) or a Ray cluster.

Both give every run a worker of its own at a time, so that one that dies takes no other with it.
"""

import logging
import os
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor

from qrl.agents.runs.run_folder import RunFolder
from qrl.agents.studies.folder import EVALUATION
from qrl.agents.studies.worker import Task, attempt, serve
from qrl.common.errors import ConfigError, UserError
from qrl.common.files import atomic_write

DIED = "its worker process died; the usual reason is that memory ran out (then use fewer --jobs)"


class Backend(ABC):
    """Runs tasks, `jobs` at a time, each with `threads` threads."""

    def __init__(self, cores: int, jobs: int | None) -> None:
        self.jobs = jobs or cores
        self.threads = max(1, cores // self.jobs)
        self._pool = ThreadPoolExecutor(self.jobs)

    def submit(self, task: Task) -> "Future[str | None]":
        """The future holds what went wrong, or None."""
        return self._pool.submit(self._try, task)

    def _try(self, task: Task) -> str | None:
        try:
            return self._run(task)
        except UserError as error:  # as when the disk is full
            return str(error)

    @abstractmethod
    def _run(self, task: Task) -> str | None:
        """Wait for the task, in one of `jobs` threads."""

    def close(self) -> None:
        """Stop at once what still runs."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class LokyBackend(Backend):
    def __init__(self, jobs: int | None) -> None:
        super().__init__(cpu_count(), jobs)
        self._own = threading.local()
        self._executors: list[ProcessPoolExecutor] = []

    def _run(self, task: Task) -> str | None:
        # A pool of one process for each job, because the death of a process breaks its whole pool.
        executor = getattr(self._own, "executor", None)
        if executor is None:
            executor = ProcessPoolExecutor(max_workers=1, initializer=serve, initargs=(os.getpid(),))
            self._own.executor = executor
            self._executors.append(executor)
        try:
            error: str | None = executor.submit(attempt, task).result()
        except BrokenProcessPool:
            self._own.executor = None
            return DIED
        return error

    def close(self) -> None:
        super().close()
        for executor in self._executors:
            executor.shutdown(kill_workers=True)


class RayBackend(Backend):
    """Workers may be on other machines: files travel with the task and back."""

    def __init__(self, jobs: int | None, address: str | None) -> None:
        self._ray = _connect(address)
        cores = [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]]
        super().__init__(max(1, sum(cores)), jobs)
        self.threads = min(self.threads, max([1, *cores]))  # a run stays on one machine
        self._remote = self._ray.remote(num_cpus=self.threads, max_retries=0)(remote_attempt)
        self._shared: dict[str, Any] = {}
        self._lock = threading.Lock()

    def _run(self, task: Task) -> str | None:
        run, dataset = Path(task.settings["run"]), str(task.settings["dataset"])
        try:
            error, files = self._ray.get(self._remote.remote(task, self._put(dataset), pack(run)))
        except self._ray.exceptions.RayTaskError as failure:  # as when qrl is not installed there
            return f"{type(failure.cause).__name__}: {failure.cause}"
        except self._ray.exceptions.RayError as failure:
            return f"{DIED} ({type(failure).__name__})"
        unpack(files, run)
        return None if error is None else str(error)

    def _put(self, dataset: str) -> Any:
        """A dataset in the cluster's memory, once for all runs."""
        with self._lock:
            if dataset not in self._shared:
                self._shared[dataset] = self._ray.put(Path(dataset).read_bytes())
            return self._shared[dataset]

    def close(self) -> None:
        super().close()
        self._ray.shutdown()


def remote_attempt(task: Task, dataset: bytes, files: dict[str, bytes]) -> tuple[str | None, dict[str, bytes]]:
    """A run in a folder of its own on whatever machine; returns what went wrong, and the files of the run."""
    with TemporaryDirectory(prefix="qrl-") as temporary:
        run, data = Path(temporary) / "run", Path(temporary) / "dataset.npz"
        here = {"run": str(run), "dataset": str(data)}
        data.write_bytes(dataset)
        unpack(files, run)
        _move(run, here)
        error = attempt(replace(task, settings=task.settings | here))
        _move(run, {key: task.settings[key] for key in here})
        return error, pack(run)


def _move(run: Path, places: dict[str, Any]) -> None:
    """Tell a run where it and its data lie."""
    folder = RunFolder(run)
    if folder.config.is_file():
        folder.write_config(folder.read_config() | places)


def pack(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their relative paths; nothing, if there is none."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def unpack(files: dict[str, bytes], folder: Path) -> None:
    """Write packed files; those that make a folder a training run, and a finished one, come last."""
    last = ["config.yaml", EVALUATION]
    for name in sorted(files, key=lambda name: last.index(name) if name in last else -1):
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ConfigError(f"a worker sent the file {name!r}, which lies outside of its run")
        with atomic_write(path) as file:
            file.write(files[name])


def _connect(address: str | None) -> Any:
    try:
        import ray
    except ImportError:
        raise ConfigError("--backend ray needs Ray; install it with: pip install 'qrl[ray]'") from None
    try:
        if address is not None:
            _knock(address)
        ray.init(address=address or "auto", log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        where = f"at {address}" if address else "on this machine"
        raise ConfigError(
            f"--ray-address: no Ray cluster answers {where} ({error}); "
            "start one with `ray start --head`, or give the HOST:PORT of another"
        ) from None
    return ray


def _knock(address: str) -> None:
    """Ask at once whether anybody listens: Ray itself takes minutes to find out."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        raise ValueError("an address is HOST:PORT")
    socket.create_connection((host, int(port)), timeout=10).close()


BACKENDS: dict[str, Callable[[int | None, str | None], Backend]] = {
    "loky": lambda jobs, _: LokyBackend(jobs),
    "ray": RayBackend,
}
