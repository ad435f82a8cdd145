"""Damaged files: each goes through what a user does with it, in a worker process with limits on time and memory."""

import os
import random
import shutil
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from qrl.common.errors import UserError
from tests.storm.containers import RESEALED
from tests.storm.kinds import KINDS, Kind, LostError, Use, make_specimens
from tests.storm.processes import BYTES, Limit, default_signals
from tests.storm.report import Outcome, Verdict

REFUSED, UNHARMED, OTHER = "refused", "without effect", "read as other values"
LONG_ERROR = 2_000  # characters
# What a user cannot get again: a command that refuses a file leaves these alone.
PRECIOUS = ("checkpoint.safetensors", "config.yaml", "metrics.csv", "run.json", "study.yaml", "data.npz")
Answer = tuple[Verdict, str]


# Damage to a file as a whole


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _missing(path: Path) -> None:
    path.unlink()


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


WHOLE = (_empty, _missing, _folder, _endless)  # the first cases of every kind


def mutated(seed: int, kind: Kind, number: int, data: bytes) -> tuple[str, bytes]:
    """The name of the mutation of a case, and what it makes of the data."""
    rng = random.Random(f"{seed} {kind.name} {number}")
    mutation = rng.choice(kind.mutations)
    return mutation.__name__, mutation(rng, data)


def _use(kind: Kind, number: int) -> Use:
    return kind.uses[number % len(kind.uses)]


def _kind(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)


class Worker:
    """Handles the cases of one storm in a process; `specimens` are the undamaged files, `work` is where they belong."""

    def __init__(self, seed: int, specimens: Path, work: Path) -> None:
        self.seed, self.specimens, self.work = seed, specimens, work

    def serve(self, connection: Connection) -> None:
        default_signals()
        while True:
            name, number = connection.recv()
            try:
                self.prepare(_kind(name), number)
                connection.send("ready")
                answer: Answer | str = self.judge(_kind(name), number)
            except Exception:  # of the storm itself
                answer = traceback.format_exc()
            connection.send(answer)

    def prepare(self, kind: Kind, number: int) -> object:
        """What the use of the undamaged file gives, which has no limits."""
        return self._expected(kind.folder, _use(kind, number))

    def judge(self, kind: Kind, number: int) -> Answer:
        use, expected = _use(kind, number), self.prepare(kind, number)
        self._lay_out(kind.folder)
        what = self.damage(kind, number)
        before = self._precious(kind.folder)
        memory = _reset_peak()
        try:
            result = use()
        except UserError as error:
            verdict, detail = self._judge_refusal(str(error), before, self._precious(kind.folder))
        except LostError as error:
            verdict, detail = Verdict.LOST, str(error)
        except BaseException:  # also what should never be raised
            verdict, detail = Verdict.TRACEBACK, traceback.format_exc()
        else:
            verdict, detail = Verdict.SURVIVED, UNHARMED if result == expected else OTHER
            if detail == OTHER and kind.hashed and what not in RESEALED:
                verdict = Verdict.WRONG
        if _peak() - memory > BYTES:
            verdict, detail = Verdict.BIG, f"{_peak() - memory:,} bytes, {detail}"
        return verdict, detail if verdict == Verdict.SURVIVED else f"{what}, {use.__name__}: {detail}"

    def damage(self, kind: Kind, number: int) -> str:
        """Damage the file in the folder of the work; says how."""
        (path,) = self.work.glob(kind.file)
        if number < len(WHOLE):
            WHOLE[number](path)
            return WHOLE[number].__name__.strip("_")
        name, data = mutated(self.seed, kind, number, path.read_bytes())
        path.write_bytes(data)
        return name

    @cache  # noqa: B019 - lives as long as its process
    def _expected(self, folder: str, use: Use) -> object:
        self._lay_out(folder)
        return use()

    def _lay_out(self, folder: str) -> None:
        os.chdir(self.work)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.specimens / folder, folder)
        os.chdir(folder)

    def _precious(self, folder: str) -> dict[str, bytes]:
        paths = (path for path in Path(self.work / folder).rglob("*") if path.name in PRECIOUS and path.is_file())
        return {str(path.relative_to(self.work)): path.read_bytes() for path in paths}

    @staticmethod
    def _judge_refusal(message: str, before: dict[str, bytes], after: dict[str, bytes]) -> Answer:
        changed = [name for name, data in before.items() if after.get(name) != data]
        if changed:
            return Verdict.LOST, f"a refusal changed {', '.join(changed)}: {message}"
        if len(message) > LONG_ERROR:
            return Verdict.LONG, f"{len(message):,} characters: {message[:500]}"
        return Verdict.SURVIVED, REFUSED


class Files:
    """All cases; the worker is forked anew after a crash or a limit."""

    def __init__(self, seed: int, count: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        total = sum(kind.weight for kind in KINDS)
        self.counts = {kind.name: -(-count * kind.weight // total) if count else 0 for kind in KINDS}
        self.total = sum(self.counts.values())
        self.worker = Worker(seed, folder / "specimens", folder / "work")
        self._pid = 0
        self._connection: Connection | None = None
        if self.total:
            self._prepare()

    def _prepare(self) -> None:
        """Specimens are made where they are used, by a process that ends, and then copied."""
        (self.folder / "work").mkdir(parents=True)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                make_specimens(self.folder / "work")
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0, "the undamaged files cannot be made"
        (self.folder / "work").rename(self.folder / "specimens")
        (self.folder / "work").mkdir()

    def __iter__(self) -> Iterator[str]:
        """One of each kind in turn, so that a storm that is stopped early has seen all."""
        cases = [(number / count, f"{name}:{number}") for name, count in self.counts.items() for number in range(count)]
        yield from (case for _, case in sorted(cases, key=lambda pair: pair[0]))

    def run(self, case: str) -> Outcome:
        name, _, number = case.rpartition(":")
        verdict, detail = self._ask(name, int(number))
        outcome = Outcome(case, name, verdict, detail)
        if outcome.failed and int(number) >= len(WHOLE):
            self._keep(_kind(name), int(number))
        return outcome

    def _ask(self, name: str, number: int) -> Answer:
        connection = self._connection or self._start()
        try:
            connection.send((name, number))
            ready = connection.recv()
            assert ready == "ready", f"{name}:{number}: {ready}"
            limit = Limit(self._pid)
            while not limit.exceeded:
                if connection.poll(0.5):
                    answer = connection.recv()
                    assert not isinstance(answer, str), f"{name}:{number}: {answer}"
                    verdict, detail = answer
                    return verdict, detail
        except (EOFError, OSError):
            status = self._stop()
            return Verdict.TRACEBACK, f"the process died: {os.waitstatus_to_exitcode(status)}"
        self._stop()
        return Verdict.SLOW, "takes too long"

    def _start(self) -> Connection:
        connection, other = Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                connection.close()
                self.worker.serve(other)
            finally:
                os._exit(0)
        other.close()
        self._connection = connection
        return connection

    def _stop(self) -> int:
        assert self._connection is not None
        self._connection.close()
        self._connection = None
        os.kill(self._pid, 9)
        return os.waitpid(self._pid, 0)[1]

    def close(self) -> None:
        if self._connection is not None:
            self._stop()
        shutil.rmtree(self.folder / "work", ignore_errors=True)

    def _keep(self, kind: Kind, number: int) -> None:
        """Put the damaged file where it can be looked at."""
        kept = self.folder / "failures" / f"{kind.name.replace(' ', '-')}-{number}"
        kept.mkdir(parents=True, exist_ok=True)
        (specimen,) = (self.folder / "specimens").glob(kind.file)
        _, data = mutated(self.seed, kind, number, specimen.read_bytes())
        (kept / specimen.name).write_bytes(data)


def _reset_peak() -> int:
    """Let the kernel measure the peak of memory anew; the memory in use now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
