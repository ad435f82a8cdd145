"""Full and read-only file systems: a command says so once, keeps the last good state, and continues when it can."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qrl.scripts import collect_dataset, evaluate_planning, inspect_dataset
from tests.storm.kills import Subject
from tests.storm.processes import Ended, Main, run
from tests.storm.report import Outcome, Verdict
from tests.storm.states import difference, end_state

SIZE = 4 * 2**20  # of the file system
FULL, READ_ONLY = "full disk", "read-only folder"
# Other commands than training, on a folder with a finished run, and what they write.
COMMANDS: dict[str, tuple[Main, list[str]]] = {
    "evaluate-planning": (evaluate_planning.main, ["run", "--json", "out.json"]),
    "collect-dataset": (collect_dataset.main, ["out.npz", "layout=corridor", "trajectories=200"]),
    "inspect-dataset": (inspect_dataset.main, ["run/dataset.npz", "--picture", "out.png"]),
}


class Disks:
    """All cases, numbered; where mounting is not permitted, they are counted as such."""

    def __init__(self, seed: int, count: int, folder: Path) -> None:
        self.seed, self.folder, self.total = seed, folder, count
        self.mount = folder / "mount"
        self.mount.mkdir(parents=True)
        self.permitted = _mount("-t", "tmpfs", "-o", f"size={SIZE}", "storm", str(self.mount))
        if self.permitted:
            _unmount(self.mount)
        self.subject = Subject("mbold", "iqe-maxmean", folder / "undisturbed")

    def __iter__(self) -> Iterator[str]:
        yield from (f"disk:{number}" for number in range(self.total))

    def close(self) -> None:
        shutil.rmtree(self.folder / "undisturbed", ignore_errors=True)

    def run(self, case: str) -> Outcome:
        number = int(case.removeprefix("disk:"))
        rng = random.Random(f"{self.seed} {case}")
        kind = READ_ONLY if number % 4 == 3 else FULL
        name = rng.choice(["start", "start", "start", "resume", "resume", "resume", *COMMANDS])
        if not self.permitted:
            return Outcome(case, kind, Verdict.SKIPPED)
        with self._file_system() as folder:
            if name != "start":
                self._prepare(folder, stopped=name == "resume")
            before = end_state(folder)
            with _read_only(folder) if kind == READ_ONLY else _full(folder, rng):
                ended = self._try(name, folder)
            verdict, detail = _judge(ended) or self._after(name, folder, before)
        text = f"{name}: {detail}\n{ended}"
        return Outcome(case, kind, verdict, "" if verdict == Verdict.SURVIVED else text)

    @contextmanager
    def _file_system(self) -> Iterator[Path]:
        _mount("-t", "tmpfs", "-o", f"size={SIZE}", "storm", str(self.mount))
        try:
            yield self.mount
        finally:
            _unmount(self.mount)

    def _prepare(self, folder: Path, stopped: bool) -> None:
        """A finished run, or the same at a checkpoint that it has kept."""
        assert self.subject.expected
        shutil.copytree(self.subject.folder / "run", folder / "run")
        if stopped:
            kept = sorted((folder / "run" / "checkpoints").iterdir())[0]
            shutil.copy(kept, folder / "run" / "checkpoint.safetensors")
            (folder / "run" / "COMPLETE").unlink()

    def _try(self, name: str, folder: Path) -> Ended:
        if name in COMMANDS:
            return run(*COMMANDS[name], folder)
        return run(self.subject.main, self.subject.command(folder), folder)

    def _after(self, name: str, folder: Path, before: dict[str, bytes]) -> tuple[Verdict, str]:
        """With space again, the command does what it should have done."""
        if name not in COMMANDS:
            return self.subject.finish(folder)
        (out,) = (argument for argument in COMMANDS[name][1] if argument.startswith("out."))
        lost = difference({path: data for path, data in end_state(folder).items() if path != out}, before)
        if lost:
            return Verdict.LOST, lost
        (folder / out).unlink(missing_ok=True)
        ended = self._try(name, folder)
        return (Verdict.SURVIVED, "") if ended.status == 0 else (Verdict.LOST, str(ended))


def _judge(ended: Ended) -> tuple[Verdict, str] | None:
    """It either had enough space, or says once that it had not."""
    if ended.fault:
        return ended.fault, ""
    return None if ended.status == 0 or ended.refused else (Verdict.TRACEBACK, "more than one error")


@contextmanager
def _full(folder: Path, rng: random.Random) -> Iterator[None]:
    """Leave a few pages, or none."""
    statistics = os.statvfs(folder)
    free = statistics.f_bavail * statistics.f_frsize
    ballast = folder.parent / "mount" / "ballast"
    ballast.write_bytes(bytes(max(0, free - rng.choice([0, 1, 2, 3, 5, 8, 12, 16, 20, 25, 30]) * 4096)))
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def _read_only(folder: Path) -> Iterator[None]:
    assert _mount("-o", "remount,ro", str(folder))
    try:
        yield
    finally:
        assert _mount("-o", "remount,rw", str(folder))


def _mount(*arguments: str) -> bool:
    program = shutil.which("mount")
    return program is not None and subprocess.run([program, *arguments], capture_output=True).returncode == 0


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", str(folder)], check=True, capture_output=True)
