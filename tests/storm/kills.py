"""Training runs that are killed, at every file-system operation and at random, and then brought to their end."""

import random
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from qrl.agents.learners.registry import find_settings, list_learners
from qrl.registry import list_q_models
from qrl.scripts import train_agent, train_graph
from tests.storm.operations import Operations
from tests.storm.processes import Ended, Forked, Main, run
from tests.storm.report import Outcome, Verdict
from tests.storm.states import difference, end_state

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CHAIN = 3  # kills of a run that is killed at random, before it may end
RANDOM = "at a random time or operation"
_COMMON = [
    *("run=run", "compile=off", "threads=1", "model.width=8", "model.latent_size=8"),
    *("learner.batch_size=16", "learner.epochs=0.01", "learner.min_steps=12"),
    *("log_every=2", "evaluate_every=6", "checkpoint_every=4", "checkpoint_keep=2"),
]
_DATA: dict[str, tuple[Main, list[str]]] = {
    "trajectories": (
        train_agent.main,
        ["collector.layout=corridor", "collector.trajectories=20", "collector.max_steps=20"],
    ),
    "graph": (train_graph.main, ["graph.kind=random-sparse", "graph.nodes=20", "graph.feature_size=8"]),
}


@dataclass(frozen=True)
class Kill:
    """A signal before an operation; `torn`: seed of the length to which the file being written is cut."""

    number: signal.Signals
    at: int | None = None
    torn: int | None = None


class Subject:
    """A training command with its settings, and what it leaves when nothing disturbs it."""

    def __init__(self, learner: str, model: str, folder: Path) -> None:
        self.name = f"{learner}, {model}"
        self.main, data = _DATA[find_settings(learner).DATA]
        self.argv = [f"learner.name={learner}", f"model.name={model}", *data, *_COMMON]
        self.folder = folder
        folder.mkdir(parents=True)

    @cached_property
    def undisturbed(self) -> Ended:
        log = self.folder.with_suffix(".operations")
        return Forked(self.main, self.argv, self.folder, Operations(self.folder, log).install).wait()

    @cached_property
    def operations(self) -> list[str]:
        """Of the undisturbed run."""
        assert self.undisturbed.status == 0, self.undisturbed
        return self.folder.with_suffix(".operations").read_text().splitlines()

    @cached_property
    def expected(self) -> dict[str, bytes]:
        assert self.undisturbed.status == 0, self.undisturbed
        return end_state(self.folder)

    def command(self, folder: Path) -> list[str]:
        """What a user types next: the run is resumed if there is one, else started."""
        return ["--resume", "run"] if (folder / "run" / "config.yaml").is_file() else self.argv

    def fork(self, folder: Path, kill: Kill | None) -> Forked:
        watch = None if kill is None else Operations(folder, None, kill.at, kill.number, kill.torn)
        return Forked(self.main, self.command(folder), folder, (lambda: None) if watch is None else watch.install)

    def killed(self, folder: Path, kill: Kill, seconds: float | None = None) -> Ended:
        """Start or resume the run, and kill it at its operation, or after a time."""
        process = self.fork(folder, kill)
        if seconds is not None:
            time.sleep(seconds)
            process.kill(kill.number)  # even if it has ended: it has not been waited for
        return process.wait()

    def finish(self, folder: Path) -> tuple[Verdict, str]:
        """Bring a killed run to its end, and compare it with the undisturbed one."""
        ended = run(self.main, self.command(folder), folder)
        if ended.status != 0 or ended.fault:
            return ended.fault or Verdict.LOST, str(ended)
        differs = difference(end_state(folder), self.expected)
        return (Verdict.WRONG, differs) if differs else (Verdict.SURVIVED, "")


def judge(ended: Ended, kill: Kill) -> tuple[Verdict, str] | None:
    """What is wrong with how a killed process ended."""
    statuses = (0, -kill.number, 128 + kill.number, 130)
    fault = ended.fault or (None if ended.status in statuses else Verdict.LOST)
    return None if fault is None else (fault, str(ended))


class Kills:
    """All cases, numbered; each in a folder of its own below `folder`."""

    def __init__(self, seed: int, count: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.subject = Subject("mbold", "iqe-maxmean", folder / "undisturbed" / "first")
        every = [("start", *kill) for kill in self._named(self.subject.operations)]
        every += [("resume", *kill) for kill in self._named(self._resumed)]
        rng = random.Random(f"{seed} kills")
        self.named = rng.sample(every, min(len(every), round(0.75 * count)))
        self.chains = max(1, (count - len(self.named)) // CHAIN) if count else 0
        self.total = len(self.named) + CHAIN * self.chains

    @staticmethod
    def _named(operations: list[str]) -> Iterator[tuple[str, Kill]]:
        """A kill at every operation by every signal; and with a torn file, where one was being written."""
        for at, operation in enumerate(operations):
            yield from ((operation, Kill(number, at)) for number in SIGNALS)
            if at and operations[at - 1].startswith("open"):
                yield operation, Kill(signal.SIGKILL, at, torn=at)

    @cached_property
    def _stopped(self) -> Path:
        """A run that has stopped in its middle."""
        folder = self.folder / "undisturbed" / "stopped"
        folder.mkdir()
        middle = [at for at, name in enumerate(self.subject.operations) if name == "open metrics.csv"][3]
        self.subject.killed(folder, Kill(signal.SIGTERM, middle))
        return folder

    @cached_property
    def _resumed(self) -> list[str]:
        """The operations of a resumed run."""
        copy = self.folder / "undisturbed" / "resumed"
        shutil.copytree(self._stopped, copy)
        log = copy.with_suffix(".operations")
        ended = Forked(self.subject.main, ["--resume", "run"], copy, Operations(copy, log).install).wait()
        assert ended.status == 0, ended
        return log.read_text().splitlines()

    def __iter__(self) -> Iterator[str]:
        yield from (f"kill:{number}" for number in range(len(self.named) + self.chains))

    def close(self) -> None:
        shutil.rmtree(self.folder / "undisturbed", ignore_errors=True)

    def run(self, case: str) -> Outcome:
        number = int(case.removeprefix("kill:"))
        folder = self.folder / f"kill-{number}"
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier try
        outcome = self._one(case, number, folder) if number < len(self.named) else self._chain(case, number, folder)
        if not outcome.failed:
            shutil.rmtree(folder)
        return outcome

    def _one(self, case: str, number: int, folder: Path) -> Outcome:
        phase, operation, kill = self.named[number]
        if phase == "start":
            folder.mkdir()
        else:
            shutil.copytree(self._stopped, folder)
        kind = f"during {operation.partition(' ')[2]}"
        ended = self.subject.killed(folder, kill)
        verdict, detail = judge(ended, kill) or self.subject.finish(folder)
        text = f"{phase}: {kill}, before: {operation}\n{detail}" if detail else f"by {kill.number.name}"
        return Outcome(case, kind, verdict, text)

    @cache  # noqa: B019 - lives as long as the storm
    def _subject(self, number: int) -> Subject:
        """Learners in turn, each with a random model that it accepts."""
        learner = list_learners()[number % len(list_learners())]
        models = list_q_models()
        random.Random(f"{self.seed} {learner}").shuffle(models)
        subjects = (Subject(learner, model, self.folder / "undisturbed" / f"{learner}-{model}") for model in models)
        return next(subject for subject in subjects if subject.undisturbed.status == 0)

    def _chain(self, case: str, number: int, folder: Path) -> Outcome:
        """A run that is killed again and again."""
        rng = random.Random(f"{self.seed} {case}")
        subject = self._subject(number % len(list_learners()))
        folder.mkdir()
        kills, wrong, steps = 0, None, []
        while kills < CHAIN and wrong is None:
            kill = Kill(rng.choice(SIGNALS))
            seconds: float | None = rng.uniform(0, subject.undisturbed.seconds)
            if rng.random() < 0.5:
                at, seconds = rng.randrange(len(subject.operations)), None
                # Only SIGKILL leaves a torn file: after another signal, the process would continue to write it.
                kill = Kill(kill.number, at, torn=at if kill.number == signal.SIGKILL else None)
            ended = subject.killed(folder, kill, seconds)
            steps.append(f"{kill} after {seconds} s: {ended.status}")
            wrong = judge(ended, kill)
            kills += ended.status != 0
            if ended.status == 0:  # it was faster than the kill
                break
        verdict, detail = wrong or subject.finish(folder)
        text = f"{subject.name}: {'; '.join(steps)}\n{detail}" if detail else "by several signals"
        return Outcome(case, RANDOM, verdict, text, kills)
