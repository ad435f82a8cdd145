"""The benchmarks are importable without running, and the one of the training step works at a small size."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from benchmarks import training_step
from benchmarks.measure import Times
from qrl.agents.runs.trainer import Trainer
from qrl.envs.collector import CollectorSettings


def test_importing_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module("benchmarks.__main__")
    assert capsys.readouterr().out == ""


def test_training_step(monkeypatch: pytest.MonkeyPatch) -> None:
    paper_trainer = training_step.paper_trainer
    calls: list[str] = []

    def small_trainer(name: str, compiled: bool = False, dataset: Any = None) -> Trainer:
        return paper_trainer(name, False, dataset, model__width=8, learner__batch_size=16)

    def call_once(functions: Mapping[str, Callable[[], Any]], rounds: int = 1) -> Times:
        for name, function in functions.items():
            function()
            calls.append(name)
        return Times({name: [2.0 if name == "naive" else 1.0] for name in functions})

    monkeypatch.setattr(training_step, "CollectorSettings", lambda: CollectorSettings(trajectories=3))
    monkeypatch.setattr(training_step, "paper_trainer", small_trainer)
    monkeypatch.setattr(training_step, "milliseconds", call_once)
    monkeypatch.setattr(training_step, "matrix_product", lambda: lambda: None)
    text = training_step.main()
    assert calls == ["naive", "eager", "compiled", "mrn-fixed", "pqe-gg", "product"]
    assert "| iqe-maxmean, eager | 1 | 2.0x |" in text
    assert text.startswith("## Training step\n")
