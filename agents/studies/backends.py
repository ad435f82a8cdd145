"""Where runs are computed: processes of this machine (loky) or a Ray cluster.

A worker has one run at a time, so that no other run is lost when it dies.
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
from types import TracebackType
from typing import Any, Self

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor

from qrl.agents.studies.folder import EVALUATION
from qrl.agents.studies.worker import Job, attempt, serve
from qrl.common.config_files import dump_yaml, read_config
from qrl.common.errors import ConfigError, UserError
from qrl.common.files import atomic_write
from qrl.common.locks import LOCK

DIED = "its worker process died, usually because memory ran out (then use fewer --jobs)"


def split_cores(cores: int, jobs: int | None) -> tuple[int, int]:
    """The number of jobs, by default one per core, and of threads for each of them."""
    jobs = jobs or cores
    return jobs, max(1, cores // jobs)


class Backend(ABC):
    """Computes up to `jobs` jobs in parallel, with `threads` threads each."""

    def __init__(self, cores: int, jobs: int | None) -> None:
        self.jobs, self.threads = split_cores(cores, jobs)
        self._pool = ThreadPoolExecutor(self.jobs)

    def submit(self, job: Job) -> "Future[str | None]":
        """The future holds what went wrong, or None."""
        return self._pool.submit(self._try, job)

    def _try(self, job: Job) -> str | None:
        try:
            return self._run(job)
        except UserError as error:  # as when the disk is full
            return str(error)

    @abstractmethod
    def _run(self, job: Job) -> str | None:
        """Wait for the job, in one of `jobs` threads."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(kill=kind is not None)

    def _close(self, kill: bool) -> None:
        """End the workers, at once if `kill`; otherwise all of them are idle."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class LokyBackend(Backend):
    def __init__(self, jobs: int | None) -> None:
        super().__init__(cpu_count(), jobs)
        self._thread = threading.local()
        self._executors: list[ProcessPoolExecutor] = []

    def _run(self, job: Job) -> str | None:
        # A pool of one process per job, because the death of a process breaks its whole pool.
        executor = getattr(self._thread, "executor", None)
        if executor is None:
            executor = ProcessPoolExecutor(max_workers=1, initializer=serve, initargs=(os.getpid(),))
            self._thread.executor = executor
            self._executors.append(executor)
        try:
            error: str | None = executor.submit(attempt, job).result()
        except BrokenProcessPool:
            self._thread.executor = None
            return DIED
        return error

    def _close(self, kill: bool) -> None:
        super()._close(kill)
        # Killed workers leak semaphores, which Python warns about. Idle ones end in parallel; Python waits at exit.
        for executor in self._executors:
            executor.shutdown(wait=kill, kill_workers=kill)


class RayBackend(Backend):
    """Workers may be on other machines: files travel with the job and back."""

    def __init__(self, jobs: int | None, address: str | None) -> None:
        self._ray = _connect(address)
        cores = [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]]
        super().__init__(max(1, sum(cores)), jobs)
        self.threads = min(self.threads, max([1, *cores]))  # a run stays on one machine
        self._remote = self._ray.remote(num_cpus=self.threads, max_retries=0)(remote_attempt)
        self._shared: dict[Path, Any] = {}  # datasets
        self._lock = threading.Lock()

    def _run(self, job: Job) -> str | None:
        run, dataset = Path(job.settings["run"]), Path(job.settings["dataset"])
        try:
            error, files = self._ray.get(self._remote.remote(job, self._put(dataset), pack(run)))
        except self._ray.exceptions.RayTaskError as failure:  # as when qrl is not installed there
            return f"{type(failure.cause).__name__}: {failure.cause}"
        except self._ray.exceptions.RayError as failure:
            return f"{DIED} ({type(failure).__name__})"
        unpack(files, run)
        return None if error is None else str(error)

    def _put(self, dataset: Path) -> Any:
        """A dataset in the cluster's memory, shared by all runs."""
        with self._lock:
            if dataset not in self._shared:
                self._shared[dataset] = self._ray.put(dataset.read_bytes())
            return self._shared[dataset]

    def _close(self, kill: bool) -> None:
        super()._close(kill)
        self._ray.shutdown()


def remote_attempt(job: Job, dataset: bytes, files: dict[str, bytes]) -> tuple[str | None, dict[str, bytes]]:
    """A run in a temporary folder of any machine; returns what went wrong, and the files of the run."""
    with TemporaryDirectory(prefix="qrl-") as temporary:
        # The same layout as in the study, because a run records where its dataset is relative to itself.
        run = Path(temporary) / "runs" / Path(job.settings["run"]).name
        data = Path(temporary) / "data" / Path(job.settings["dataset"]).name
        paths = {"run": str(run), "dataset": str(data)}
        data.parent.mkdir()
        data.write_bytes(dataset)
        unpack(files, run)
        _relocate(run, paths)
        error = attempt(replace(job, settings=job.settings | paths))
        _relocate(run, {key: job.settings[key] for key in paths})
        return error, pack(run)


def _relocate(run: Path, paths: dict[str, Any]) -> None:
    """Tell a run where it and its data are."""
    config = run / "config.yaml"
    if config.is_file():
        text = dump_yaml(read_config(str(config)) | paths)
        with atomic_write(config) as file:
            file.write(text.encode())


def pack(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their relative paths; empty if it does not exist."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def unpack(files: dict[str, bytes], folder: Path) -> None:
    """Write packed files; those that mark a folder as a training run, and as a finished one, come last."""
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
        raise ConfigError(
            "--backend ray needs Ray; install it from the checkout with: pip install -e '.[ray]'"
        ) from None
    try:
        if address is not None:
            _check_listening(address)
        ray.init(address=address or "auto", log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        where = f"at {address}" if address else "on this machine"
        raise ConfigError(
            f"--ray-address: no Ray cluster answers {where} ({error}); "
            "start one with `ray start --head`, or name another as HOST:PORT"
        ) from None
    return ray


def _check_listening(address: str) -> None:
    """Fail at once where nothing listens: Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        raise ValueError("an address is HOST:PORT")
    socket.create_connection((host, int(port)), timeout=10).close()


BACKENDS: dict[str, Callable[[int | None, str | None], Backend]] = {
    "loky": lambda jobs, _: LokyBackend(jobs),
    "ray": RayBackend,
}
