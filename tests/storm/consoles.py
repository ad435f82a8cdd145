"""Console commands that are killed: train-agent in a process of its own, and sweeps with their workers."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from tests.storm.kills import Subject
from tests.storm.kinds import STUDY
from tests.storm.report import Outcome, Verdict
from tests.storm.states import difference, end_state

CHAIN = 3  # kills of a command before it may end
PATIENCE = 180  # seconds for a sweep that nothing disturbs; one on a busy machine takes about ten
TRAIN, SWEEP = "train-agent", "sweep-agents"
KINDS = {  # command, signal and to whom it is sent
    "sweep-agents: SIGKILL": (SWEEP, signal.SIGKILL, "command"),
    "sweep-agents: SIGKILL of a worker": (SWEEP, signal.SIGKILL, "worker"),
    "sweep-agents: SIGINT, as Ctrl-C sends it to all": (SWEEP, signal.SIGINT, "group"),
    "sweep-agents: SIGTERM": (SWEEP, signal.SIGTERM, "command"),
    "train-agent: SIGKILL": (TRAIN, signal.SIGKILL, "command"),
    "train-agent: SIGTERM": (TRAIN, signal.SIGTERM, "command"),
    "train-agent: SIGINT": (TRAIN, signal.SIGINT, "command"),
}


class Console:
    """A command as a shell starts it, in a process group of its own."""

    def __init__(self, name: str, argv: list[str], folder: Path) -> None:
        program = f"import sys; from qrl.scripts.{name.replace('-', '_')} import main; sys.exit(main())"
        self.errors = folder.with_suffix(".err").open("w+b")
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *argv],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            process_group=0,
        )
        self.pid = self.process.pid

    def wait_for_start(self) -> None:
        """Until it imports torch: before, Python itself answers an interrupt."""
        while self.process.poll() is None and "libtorch" not in Path(f"/proc/{self.pid}/maps").read_text():
            time.sleep(0.01)

    def workers(self) -> list[int]:
        """The processes of a sweep that compute its runs."""
        children = Path(f"/proc/{self.pid}/task").glob("*/children")
        pids = [int(pid) for file in children for pid in file.read_text().split()]
        return [pid for pid in pids if b"LokyProcess" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def kill(self, number: int, target: str) -> bool:
        """Whether there was anything left to kill."""
        if self.process.poll() is not None:
            return False
        if target == "group":  # as Ctrl-C in a terminal does
            os.killpg(self.pid, number)
        elif target == "command":
            self.process.send_signal(number)
        else:
            while self.process.poll() is None and not self.workers():
                time.sleep(0.01)
            pids = self.workers()[:1] if self.process.poll() is None else []
            for pid in pids:
                os.kill(pid, number)
            return bool(pids)
        return True

    def wait(self) -> tuple[int, str]:
        """Its status and errors; one that hangs is killed."""
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            status = self.process.wait()
            return -signal.SIGALRM, f"hangs: {status}"
        self.errors.seek(0)
        with self.errors:
            return status, self.errors.read().decode("utf-8", "replace")


class Consoles:
    """All cases, numbered: the commands in turn, each killed several times."""

    def __init__(self, seed: int, kills: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.cases = -(-kills // CHAIN)
        self.total = CHAIN * self.cases
        (folder / "undisturbed").mkdir(parents=True)

    def close(self) -> None:
        shutil.rmtree(self.folder / "undisturbed", ignore_errors=True)

    def __iter__(self) -> Iterator[str]:
        yield from (f"console:{number}" for number in range(self.cases))

    @cached_property
    def _training(self) -> Subject:
        return Subject("qrl", "iqe-maxmean", self.folder / "undisturbed" / "train")

    @cached_property
    def _swept(self) -> tuple[dict[str, bytes], float]:
        """The end state of a sweep that nothing disturbs, and its time."""
        folder = self._new("undisturbed/sweep")
        start = time.monotonic()
        status, errors = self._start(SWEEP, folder).wait()
        assert status == 0, errors
        return end_state(folder), time.monotonic() - start

    def _new(self, name: str) -> Path:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier try
        folder.mkdir()
        (folder / "study.yaml").write_text(STUDY)
        return folder

    def _start(self, name: str, folder: Path) -> Console:
        argv = ["study.yaml", "out=results", "--jobs", "2"] if name == SWEEP else self._training.command(folder)
        return Console(name, argv, folder)

    def run(self, case: str) -> Outcome:
        """A command that is killed in the same way again and again, then left to end."""
        rng = random.Random(f"{self.seed} {case}")
        number = int(case.removeprefix("console:"))
        kind = list(KINDS)[number % len(KINDS)]
        name, sent, target = KINDS[kind]
        folder = self._new(f"console-{number}")
        seconds = 2.0 if name == TRAIN else self._swept[1] - 2  # after the imports
        kills = tries = 0
        while kills < CHAIN and tries < 3 * CHAIN:
            tries += 1
            console = self._start(name, folder)
            console.wait_for_start()
            time.sleep(rng.uniform(0, seconds))
            killed = console.kill(sent, target)
            status, errors = console.wait()
            kills += killed and (status != 0 or target == "worker")
            if "Traceback" in errors or status == -signal.SIGALRM:
                verdict = Verdict.SLOW if status == -signal.SIGALRM else Verdict.TRACEBACK
                return Outcome(case, kind, verdict, f"status {status}: {errors}", kills)
            if status == 0 and kills:  # it was faster, or did without the worker
                break
            if status == 0:  # faster than the first kill: the machine is less busy than it was
                folder, seconds = self._new(folder.name), seconds / 2
        verdict, detail = self._finish(name, folder)
        if verdict == Verdict.SURVIVED:
            shutil.rmtree(folder)
        return Outcome(case, kind, verdict, detail, kills)

    def _finish(self, name: str, folder: Path) -> tuple[Verdict, str]:
        status, errors = self._start(name, folder).wait()
        if status != 0:
            return Verdict.LOST, f"status {status}: {errors}"
        state = end_state(folder)
        if name == TRAIN:
            state.pop("study.yaml")
        differs = difference(state, self._training.expected if name == TRAIN else self._swept[0])
        return (Verdict.WRONG, differs) if differs else (Verdict.SURVIVED, "")
