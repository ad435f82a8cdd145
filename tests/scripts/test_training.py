"""What train-agent and train-graph share, on a run that computes nothing."""

import os
import signal
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qrl.agents.runs.problems import PROBLEMS
from qrl.common.errors import ConfigError
from qrl.scripts import _training

PROBLEM = PROBLEMS["train-agent"]


class ToyRun:
    """Four steps, of which two are done; `interrupt_at` is a step during which SIGTERM arrives."""

    path = Path("runs/toy")
    dataset = None
    problem = SimpleNamespace(
        command="train-agent",
        scored=lambda settings, dataset: ["success_rate", "absolute_error"],
        remarks=lambda name, scores, dataset, seed: [f"{name} has {scores['success_rate']}, {seed}"],
    )

    def __init__(self, compile_: str = "off", interrupt_at: int | None = None) -> None:
        self.settings = SimpleNamespace(model=SimpleNamespace(name="toy"), compile=compile_, seed=5)
        self.learner = SimpleNamespace(name="mbold", steps_done=2, num_steps=4)
        self.trainer = SimpleNamespace(learner=self.learner)
        self._interrupt_at = interrupt_at

    def train(self, stop: Callable[[], bool]) -> Iterator[dict[str, float]]:
        for step in (3, 4):
            if stop():
                return
            if step == self._interrupt_at:
                os.kill(os.getpid(), signal.SIGTERM)
            self.learner.steps_done = step
            yield {"step": step, "loss": 1 / step} | ({"success_rate": 0.5, "absolute_error": 9} if step == 4 else {})


def train(run: ToyRun) -> int:
    return _training._train(run)  # type: ignore[arg-type]


def test_plain_lines_go_to_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("qrl.common.progress.PLAIN_SECONDS", 0)
    assert train(ToyRun()) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "training toy by mbold in runs/toy, steps 2 to 4",
        "complete: runs/toy, loss 0.25, success_rate 0.5 (0 s)",
    ]
    assert captured.err.splitlines() == [
        "3 of 4 steps, loss 0.3333; about 0.0 minutes left",
        "4 of 4 steps, loss 0.25, success_rate 0.5; about 0.0 minutes left",
        "note: toy has 0.5, 5",
    ]


@pytest.mark.parametrize(("setting", "announced"), [("on", True), ("off", False)])
def test_compilation_is_announced(setting: str, announced: bool, capsys: pytest.CaptureFixture[str]) -> None:
    train(ToyRun(setting))
    assert ("kernels are compiled on first use" in capsys.readouterr().out) == announced


def test_a_signal_stops_after_the_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(ToyRun(interrupt_at=3)) == 128 + signal.SIGTERM
    captured = capsys.readouterr()
    assert captured.out.endswith("stopped at step 3; continue with: train-agent --resume runs/toy\n")
    assert captured.err == f"\n{_training.STOPPING}\n"


def test_a_signal_in_the_last_step_does_not_undo_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert train(ToyRun(interrupt_at=4)) == 0
    assert "complete: runs/toy" in capsys.readouterr().out


def test_only_a_second_interrupt_raises() -> None:
    with _training._stop_signals() as received:
        os.kill(os.getpid(), signal.SIGINT)
        assert received == [signal.SIGINT]
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGINT, signal.SIGTERM]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_signal_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt), _training._stop_signals():
        raise KeyboardInterrupt
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def resume_arguments(*overrides: str, **options: Any) -> Namespace:
    defaults = {"resume": None, "force": False, "dry_run": False, "init": None, "config": None}
    return Namespace(**defaults | {"overrides": list(overrides)} | options)


def test_changes_hold_only_what_was_given(trained: Path) -> None:
    assert _training._changes(PROBLEM, resume_arguments(resume=trained)) == {}
    arguments = resume_arguments("dataset=/data/d.npz", "learner.min_steps=9", resume=trained)
    changes = _training._changes(PROBLEM, arguments)
    assert changes == {"dataset": "/data/d.npz", "learner": {"name": "mbold", "min_steps": 9}}


@pytest.mark.parametrize("option", [{"force": True}, {"dry_run": True}, {"init": "other"}])
def test_options_that_contradict_resuming(option: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="--resume cannot be combined with --force, --dry-run or --init"):
        _training._changes(PROBLEM, resume_arguments(**option))


def test_chosen_follows_nested_keys() -> None:
    values = {"a": 1, "b": {"c": 2, "d": {"e": 3}}, "f": None, "g": {"h": 4}}
    assert _training._chosen(values, {"a": 0, "b": {"d": {"e": 0}}}) == {"a": 1, "b": {"d": {"e": 3}}}
    # A group that has been resolved to a plain value, and a plain key that is a group.
    assert _training._chosen(values, {"f": {"x": 0}, "g": 0}) == {"f": None, "g": {"h": 4}}
