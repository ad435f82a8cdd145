import time
from pathlib import Path

import pytest
import torch

from qrl.agents.runs import dry_run as module
from qrl.agents.runs.dry_run import dry_run, estimated_seconds
from qrl.agents.runs.run import Run
from qrl.catalog import count_parameters
from qrl.common.config_files import dump_yaml
from tests.agents.worlds import small_settings


def test_what_a_dry_run_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "seconds_per_step", lambda learner: 0.25)
    monkeypatch.setattr(module, "estimated_seconds", lambda run, per_step: 90)
    run = Run.prepare(small_settings(tmp_path / "run", model={"name": "mrn-fixed"}, learner={"batch_size": 5000}))
    text = dry_run(run)
    model = run.trainer.learner.model
    head = model.head
    assert isinstance(head, torch.nn.Module)
    assert text.startswith(dump_yaml(run.settings.model_dump()))
    lines = dict(line.split(maxsplit=1) for line in text.splitlines()[-5:])
    assert lines["data"] == repr(run.dataset)
    expected = f"{count_parameters(model):,}, of which in the head {count_parameters(head):,}"
    assert lines["parameters"] == expected
    assert lines["steps"] == "20"
    assert lines["time"] == "about 1.5 minutes (250 ms per step, measured over 10)"
    assert "fewer than a batch of 5000" in lines["note"]
    assert not (tmp_path / "run").exists()


def test_the_time_is_that_of_all_steps_and_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.prepare(small_settings(evaluate_every=7))
    clock = iter([100.0, 103.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert estimated_seconds(run, 2.0) == 20 * 2 + 3 * 3  # evaluations at steps 7, 14 and 20
