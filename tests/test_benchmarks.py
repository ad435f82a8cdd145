"""The benchmarks are importable without running, and those of training steps work at a small size."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from benchmarks import learners, training_step
from benchmarks.measure import Times
from qrl.agents.runs.settings import TrainSettings
from qrl.agents.runs.trainer import Trainer
from qrl.envs.collector import CollectorSettings


def test_importing_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module("benchmarks.__main__")
    assert capsys.readouterr().out == ""


class Calls:
    """Replaces `milliseconds`: calls every function once, and takes the `slow` one to take twice as long."""

    def __init__(self, slow: str) -> None:
        self.slow = slow
        self.names: list[str] = []

    def __call__(self, functions: Mapping[str, Callable[[], Any]], rounds: int = 1) -> Times:
        for name, function in functions.items():
            function()
            self.names.append(name)
        return Times({name: [2.0 if name == self.slow else 1.0] for name in functions})


def test_training_step(monkeypatch: pytest.MonkeyPatch) -> None:
    paper_trainer = training_step.paper_trainer
    calls = Calls(slow="naive")

    def small_trainer(name: str, compiled: bool = False, dataset: Any = None) -> Trainer:
        return paper_trainer(name, False, dataset, model__width=8, learner__batch_size=16)

    monkeypatch.setattr(training_step, "CollectorSettings", lambda: CollectorSettings(trajectories=3))
    monkeypatch.setattr(training_step, "paper_trainer", small_trainer)
    monkeypatch.setattr(training_step, "milliseconds", calls)
    monkeypatch.setattr(training_step, "matrix_product", lambda: lambda: None)
    text = training_step.main()
    assert calls.names == ["naive", "eager", "compiled", "mrn-fixed", "pqe-gg", "product"]
    assert "| iqe-maxmean, eager | 1 | 2.0x |" in text
    assert text.startswith("## Training step\n")


def test_learners(monkeypatch: pytest.MonkeyPatch) -> None:
    default = learners.settings
    calls = Calls(slow="cmd")

    def small(*overrides: str) -> TrainSettings:
        return default(*overrides, "learner.batch_size=8", "compile=off")

    monkeypatch.setattr(learners, "CollectorSettings", lambda: CollectorSettings(trajectories=3))
    monkeypatch.setattr(learners, "WIDTH", 8)
    monkeypatch.setattr(learners, "settings", small)
    monkeypatch.setattr(learners, "milliseconds", calls)
    text = learners.main()
    assert {"mbold", "cmd", "gcbc", *learners.VARIANTS} <= set(calls.names)
    assert "regression" not in calls.names  # it learns from graphs
    # A batch of 8: the distances of all pairs; of all 4 x 4 actions; of all actions after each step, and of all
    # actions before it for the conservative term or, as in the paper, only of the one taken.
    assert "| cmd | 8 | 64 | 2 | 2.00x |" in text
    assert "| gcbc | 8 | 128 | 1 | 1.00x |" in text
    assert "| mbold | 8 | 64 | 1 | 1.00x |" in text
    assert "| mbold, as in the paper | 8 | 40 |" in text
    assert text.startswith("## Learners\n")


def test_learners_have_their_default_batch_sizes() -> None:
    assert [learners.settings(f"learner.name={name}").learner.batch_size for name in ("mbold", "cmd")] == [1024, 256]
