import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from qrl.agents.runs.checkpoint import load_checkpoint
from qrl.agents.runs.run_folder import RunFolder
from qrl.agents.runs.settings import TrainSettings
from qrl.agents.runs.training import AgentTraining, resume, start, train
from qrl.common.errors import ConfigError
from qrl.envs.dataset import Dataset
from qrl.registry import list_q_models
from qrl.scripts.train_agent import main as train_agent
from tests.agents.worlds import SMALL, corridor, small_settings


def run_to_end(settings: TrainSettings, **options: Any) -> list[dict[str, float]]:
    return list(train(*start(settings, **options)))


def rows(run: Path) -> list[dict[str, str]]:
    """The metrics, without the column that tells the time."""
    with (run / "metrics.csv").open() as file:
        return [{key: value for key, value in row.items() if key != "steps_per_second"} for row in csv.DictReader(file)]


def test_a_run_leaves_everything_behind(tmp_path: Path) -> None:
    run = tmp_path / "run"
    yielded = run_to_end(small_settings(run))
    assert [row["step"] for row in yielded] == [3, 6, 9, 10, 12, 15, 18, 20]
    assert [row["step"] for row in yielded if "success_rate" in row] == [10, 20]
    assert [int(row["step"]) for row in rows(run)] == [3, 6, 9, 10, 12, 15, 18, 20]
    assert json.loads((run / "COMPLETE").read_text())["success_rate"] == yielded[-1]["success_rate"]
    assert Dataset.load(run / "dataset.npz").num_episodes == 40
    facts = json.loads((run / "run.json").read_text())
    assert facts["dataset_hash"] == Dataset.load(run / "dataset.npz").content_hash
    assert facts["versions"]["torch"] == torch.__version__
    saved = TrainSettings.from_values(RunFolder.existing(run).read_config(), "config")
    assert saved == small_settings(run)
    assert facts["model_origin"] == "qrl"
    checkpoint, _ = load_checkpoint(run / "checkpoint.safetensors")
    assert (checkpoint.step, checkpoint.model_name, checkpoint.num_actions) == (20, "iqe-maxmean", 4)
    assert checkpoint.model_params["dim_per_component"] == 8  # defaults are spelt out
    result = (run / "COMPLETE").read_text()
    assert list(train(*resume(run))) == []  # resuming what is complete changes nothing
    assert (run / "COMPLETE").read_text() == result
    events = EventAccumulator(str(run / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("loss")] == [3, 6, 9, 10, 12, 15, 18, 20]
    assert [event.step for event in events.Scalars("success_rate")] == [10, 20]


def test_metrics_are_right(tmp_path: Path) -> None:
    settings = small_settings(tmp_path / "run", learner={"triangle": 1.0, "triangle_triplets": 5, "conservative": 0.1})
    last = run_to_end(settings)[-1]
    assert last["loss"] == pytest.approx(last["loss_td"] + last["loss_triangle"] + 0.1 * last["loss_conservative"])
    assert 0 < last["target_discount"] <= 1
    assert last["gradient_norm"] > 0
    assert last["lr"] < 1e-5
    assert set(rows(tmp_path / "run")[0]) == set(last) - {"steps_per_second"}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run_to_end(small_settings(tmp_path / name, seed=seed))
    a, b, c = ((tmp_path / name / "checkpoint.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c
    assert rows(tmp_path / "a") == rows(tmp_path / "b")


MODELS: list[tuple[str, dict[str, Any]]] = [
    ("iqe-maxmean", SMALL),
    ("deep-norm-fixed", {**SMALL, "num_components": 8}),
]


@pytest.mark.parametrize(("name", "params"), MODELS)
def test_stop_and_resume_equals_an_undisturbed_run(name: str, params: dict[str, Any], tmp_path: Path) -> None:
    model = {"name": name, "params": params}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_to_end(small_settings(whole, model=model))
    folder, training = start(small_settings(parts, model=model))
    for _ in train(folder, training, stop=lambda: training.learner.step >= 8):
        pass
    assert training.learner.step == 8
    assert not folder.complete.exists()
    list(train(*resume(parts)))
    assert rows(parts) == rows(whole)
    assert (parts / "checkpoint.safetensors").read_bytes() == (whole / "checkpoint.safetensors").read_bytes()


@pytest.mark.parametrize(("name", "params"), MODELS)
def test_resume_after_sigkill(name: str, params: dict[str, Any], tmp_path: Path) -> None:
    """Killed at any moment, a run goes on from its last checkpoint to the same end."""
    model, learner = {"name": name, "params": params}, {"min_steps": 200}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run_to_end(small_settings(whole, model=model, learner=learner))
    start(small_settings(killed, model=model, learner=learner))
    program = (
        "import sys, time; from qrl.agents.runs.training import resume, train\n"
        "for row in train(*resume(sys.argv[1])): time.sleep(0.02)"  # slow enough to be killed on the way
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(killed)])
    while not (killed / "metrics.csv").exists() or len(rows(killed)) < 10:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    step = load_checkpoint(killed / "checkpoint.safetensors")[0].step
    assert 0 < step < 200
    with (killed / "metrics.csv").open("a") as file:
        file.write("1")  # as a kill in the middle of a write would leave it
    list(train(*resume(killed)))
    assert rows(killed) == rows(whole)
    assert (killed / "checkpoint.safetensors").read_bytes() == (whole / "checkpoint.safetensors").read_bytes()
    events = EventAccumulator(str(killed / "tensorboard"), purge_orphaned_data=True).Reload()
    steps = [event.step for event in events.Scalars("loss")]
    assert steps == sorted(set(steps))


@pytest.mark.parametrize("name", list_q_models())
def test_every_model_trains(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty steps through the command's main function."""
    overrides = [
        *("collector.layout=corridor", "collector.trajectories=20", "learner.min_steps=20", "learner.epochs=0.01"),
        *("learner.batch_size=32", "model.params.hidden_sizes=[16, 16]", "compile=off", f"run={tmp_path / 'run'}"),
    ]
    assert train_agent([f"model.name={name}", *overrides]) == 0, capsys.readouterr().err
    assert "complete:" in capsys.readouterr().out
    final = json.loads((tmp_path / "run" / "COMPLETE").read_text())
    assert 0 <= final["success_rate"] <= 1
    assert final["step"] == 20


def test_the_real_command_stops_cleanly_and_resumes(tmp_path: Path) -> None:
    command = str(Path(sys.executable).with_name("train-agent"))
    settings = [
        *("collector.layout=corridor", "collector.trajectories=20", "learner.min_steps=100000", "run=r", "compile=off"),
        *("learner.batch_size=32", "model.params.hidden_sizes=[16]", "model.params.latent_size=16", "log_every=5"),
    ]
    process = subprocess.Popen([command, *settings], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    metrics = tmp_path / "r" / "metrics.csv"
    while not metrics.exists() or metrics.stat().st_size < 2000:
        assert process.poll() is None
        time.sleep(0.05)
    busy = subprocess.run([command, "--resume", "r"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (busy.returncode, busy.stderr) == (2, "error: r is in use by another process\n")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    step = load_checkpoint(tmp_path / "r" / "checkpoint.safetensors")[0].step
    assert f"stopped at step {step}; go on with: train-agent --resume r" in out
    changed = [command, "--resume", "r", "learner.lr=0.1", "seed=0"]
    refused = subprocess.run(changed, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "learner.lr was 0.001, now 0.1" in refused.stderr
    assert "seed" not in refused.stderr


def test_dry_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["collector.layout=corridor", "collector.trajectories=9", "model.params.hidden_sizes=[8]", "compile=off"]
    assert train_agent(["--dry-run", "model.name=mrn-fixed", *small]) == 0
    out = capsys.readouterr().out
    assert "run: runs/corridor__mrn-fixed__seed0" in out
    assert "of which in the head 98,816" in out
    assert "steps       8,000" in out
    assert "minutes" in out
    assert "fewer than a batch of 1024" in out
    assert os.listdir(tmp_path) == []


def test_own_data_without_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Dataset.from_arrays(torch.randn(8, 5).numpy(), [0, 1, 2, 1, 0, 0], [5, 1], num_actions=3).save(tmp_path / "own.npz")
    overrides = [
        f"dataset={tmp_path / 'own.npz'}",
        f"run={tmp_path / 'run'}",
        "learner.min_steps=4",
        "learner.epochs=1",
    ]
    assert train_agent([*overrides, "model.params.hidden_sizes=[8]", "compile=off"]) == 0
    assert "no layout: nothing is evaluated" in capsys.readouterr().err
    assert "success_rate" not in rows(tmp_path / "run")[0]


def test_a_run_can_be_moved_and_resumed_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    corridor().save("d.npz")
    start(small_settings(Path("1e-3"), dataset="d.npz"))  # a name that looks like a number
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here" / "1e-3").rename(tmp_path / "moved")
    list(train(*resume("moved")))
    assert (tmp_path / "moved" / "COMPLETE").exists()


def test_width_is_that_of_the_widest_layers() -> None:
    def sizes(**model: Any) -> Any:
        settings = TrainSettings.from_values({"model": model}, "test")
        return AgentTraining.build(settings, corridor()).model_params["hidden_sizes"]

    assert sizes(width=8) == [8, 8, 8]
    assert sizes(width=8, name="unconstrained-disc") == [8, 8, 8, 256]
    assert list(sizes(width=8, params={"hidden_sizes": [4]})) == [4]


def test_building_leaves_the_callers_randomness_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    AgentTraining.build(small_settings(), corridor())
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(ConfigError, match="device"):
        AgentTraining.build(small_settings(device="toaster"), corridor())
