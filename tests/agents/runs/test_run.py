"""Runs from start to end: what they leave on disk, and bit-exact resuming."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import qrl
from qrl import list_learners
from qrl.agents.errors import RunError
from qrl.agents.learners.registry import find_settings
from qrl.agents.runs.checkpoint import load_checkpoint
from qrl.agents.runs.metrics_file import TIMES
from qrl.agents.runs.run import Run
from qrl.common.config_files import read_config
from qrl.envs.dataset import Dataset
from tests.agents.runs.running import checkpoint_bytes, finish, logged_rows, run_to_end, stop_at
from tests.agents.worlds import SMALL, corridor, graph_settings, small_settings

LOGGED = [3, 6, 9, 10, 12, 15, 18, 20]


def test_a_run_writes_all_its_files(tmp_path: Path) -> None:
    path = tmp_path / "run"
    rows = run_to_end(small_settings(path))
    assert [row["step"] for row in rows] == LOGGED
    assert [row["step"] for row in rows if "success_rate" in row] == [10, 20]
    assert [int(row["step"]) for row in logged_rows(path)] == LOGGED
    assert json.loads((path / "COMPLETE").read_text())["success_rate"] == rows[-1]["success_rate"]
    assert Dataset.load(path / "dataset.npz").num_episodes == 40
    facts = json.loads((path / "run.json").read_text())
    assert facts["command"] == "train-agent"
    assert facts["dataset_hash"] == Dataset.load(path / "dataset.npz").content_hash
    assert facts["dataset_path"] is None
    assert facts["num_steps"] == 20
    assert facts["versions"]["torch"] == torch.__version__
    assert (facts["model_origin"], facts["learner_origin"]) == ("qrl", "qrl")
    run = Run.open(path)
    assert run.settings == small_settings(path)
    assert run.num_steps == 20
    assert repr(run) == f"Run({str(path)!r}, iqe-maxmean, complete)"
    checkpoint, _ = load_checkpoint(path / "checkpoint.safetensors")
    assert (checkpoint.step, checkpoint.model_name, checkpoint.num_actions) == (20, "iqe-maxmean", 4)
    assert checkpoint.model_params["dim_per_component"] == 8  # defaults are spelled out
    events = EventAccumulator(str(path / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("train/loss")] == LOGGED
    assert [event.step for event in events.Scalars("eval/success_rate")] == [10, 20]
    assert not (path / "checkpoints").exists()


def test_resuming_a_complete_run_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run_to_end(small_settings(path))
    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    assert finish(Run.resume(path)) == []
    assert {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()} == before


def test_the_columns_of_the_metrics(tmp_path: Path) -> None:
    settings = small_settings(tmp_path / "run", learner={"triangle": 1.0, "triangle_triplets": 5, "conservative": 0.1})
    last = run_to_end(settings)[-1]
    assert last["loss"] == pytest.approx(last["loss_td"] + last["loss_triangle"] + 0.1 * last["loss_conservative"])
    assert last["lr"] < 1e-5
    assert set(logged_rows(tmp_path / "run")[0]) == set(last) - set(TIMES)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run_to_end(small_settings(tmp_path / name, seed=seed))
    a, b, c = (checkpoint_bytes(tmp_path / name) for name in "abc")
    assert a == b
    assert a != c
    assert logged_rows(tmp_path / "a") == logged_rows(tmp_path / "b")


def test_nothing_is_written_before_start(tmp_path: Path) -> None:
    run = Run.prepare(small_settings(tmp_path / "run"))
    assert run.trainer.learner.num_steps == 20
    assert not (tmp_path / "run").exists()


CASES: list[Any] = [
    (small_settings, {}),
    (small_settings, {"model": {"name": "deep-norm-fixed", "params": {**SMALL, "num_components": 8}}}),
    (graph_settings, {}),
    (
        graph_settings,
        {"model": {"name": "unconstrained-disc", "params": {"hidden_sizes": [16]}}, "learner": {"triangle": 1}},
    ),
]


@pytest.mark.parametrize(("make_settings", "changes"), CASES)
def test_stop_and_resume_equals_an_uninterrupted_run(make_settings: Any, changes: Any, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    rows = run_to_end(make_settings(whole, **changes))
    assert [row["step"] for row in rows] == LOGGED
    run = Run.start(make_settings(parts, **changes))
    assert set(run.problem.scored(run.settings, run.dataset)) <= set(rows[-1])
    stop_at(run, 8)
    assert not run.complete.exists()
    finish(Run.resume(parts))
    assert logged_rows(parts) == logged_rows(whole)
    assert checkpoint_bytes(parts) == checkpoint_bytes(whole)


def test_resume_after_sigkill(tmp_path: Path) -> None:
    """Killed at any moment, a run resumes from its last checkpoint to the same end."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    longer = {"learner": {"min_steps": 60}, "evaluate_every": 30}
    run_to_end(small_settings(whole, **longer))
    Run.start(small_settings(killed, **longer))
    program = (
        "import sys, time; from qrl.agents.runs.run import Run\n"
        "for row in Run.resume(sys.argv[1]).train(): time.sleep(0.1)"  # slow enough to be killed halfway
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(killed)])
    try:
        while not (killed / "metrics.csv").exists() or len(logged_rows(killed)) < 4:
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert 0 < load_checkpoint(killed / "checkpoint.safetensors")[0].step < 60
    with (killed / "metrics.csv").open("a") as file:
        file.write("1")  # as a kill in the middle of a write would leave it
    finish(Run.resume(killed))
    assert logged_rows(killed) == logged_rows(whole)
    assert checkpoint_bytes(killed) == checkpoint_bytes(whole)
    events = EventAccumulator(str(killed / "tensorboard"), purge_orphaned_data=True).Reload()
    steps = [event.step for event in events.Scalars("train/loss")]
    assert steps == sorted(set(steps))


KILLED = """
import os, signal, sys
from qrl.agents.runs.run import Run
runs = [Run.resume(path) for path in sys.argv[1:]]
loops = [run.train() for run in runs]
for _ in range(4):
    rows = [next(loop) for loop in loops]
assert {row["step"] for row in rows} == {10}
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_every_learner_resumes_after_sigkill(tmp_path: Path) -> None:
    """All of them are trained in turn by one process, which is killed while each is halfway."""
    cases: dict[str, dict[str, Any]] = {name: {"name": name} for name in list_learners()}
    cases["mbold-options"] = {"name": "mbold", "goals": {"balanced": 0.5}, "bound": "graph", "loss": "huber"}
    cases["qrl-each"] = {"name": "qrl", "constraint": "each"}
    killed = tmp_path / "killed"
    for case, learner in cases.items():
        make_settings = graph_settings if find_settings(learner["name"]).DATA == "graph" else small_settings
        run_to_end(make_settings(tmp_path / case, learner=learner))
        Run.start(make_settings(killed / case, learner=learner))
    command = [sys.executable, "-c", KILLED, *(str(killed / case) for case in cases)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr
    for case in cases:
        assert load_checkpoint(killed / case / "checkpoint.safetensors")[0].step == 5
        finish(Run.resume(killed / case))
        assert checkpoint_bytes(killed / case) == checkpoint_bytes(tmp_path / case), case
        assert logged_rows(killed / case) == logged_rows(tmp_path / case), case


def test_fourier_features_are_part_of_the_agent(tmp_path: Path) -> None:
    fourier = {"fourier": 8, "min_steps": 10}
    run = Run.start(small_settings(tmp_path / "run", learner=fourier))
    stop_at(run, 5)
    finish(Run.resume(tmp_path / "run"))
    run_to_end(small_settings(tmp_path / "whole", learner=fourier))
    assert checkpoint_bytes(tmp_path / "run") == checkpoint_bytes(tmp_path / "whole")
    agent = qrl.load(tmp_path / "run")
    row = run.dataset.observations[0]
    assert (agent.observation_dim, agent.model.spec.observation_dim) == (len(row), len(row) + 16)
    assert agent.act(row, row) in range(4)
    assert qrl.evaluate(tmp_path / "run").success_rate is not None
    # A warm start takes over the frequencies, whatever its own seed would draw.
    warm = Run.start(small_settings(tmp_path / "warm", learner=fourier, seed=9), init=tmp_path / "run")
    saved, taken = (load_checkpoint(tmp_path / name / "checkpoint.safetensors")[1] for name in ("run", "warm"))
    assert torch.equal(taken["observations.frequencies"], saved["observations.frequencies"])
    finish(warm)


def test_a_run_can_be_moved_and_resumed_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first").mkdir()
    monkeypatch.chdir(tmp_path / "first")
    corridor().save("d.npz")
    Run.start(small_settings(Path("1e-3"), dataset="d.npz"))  # a name that looks like a number
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first" / "1e-3").rename(tmp_path / "moved")
    finish(Run.resume("moved"))
    assert (tmp_path / "moved" / "COMPLETE").exists()


def test_runs_of_the_other_command_are_refused(tmp_path: Path, trained: Path) -> None:
    with pytest.raises(RunError, match="is a run of train-agent, not of train-graph"):
        Run.resume(trained, command="train-graph")
    Run.start(graph_settings(tmp_path / "graph"))
    assert json.loads((tmp_path / "graph" / "run.json").read_text())["command"] == "train-graph"
    with pytest.raises(RunError, match="is a run of train-graph, not of train-agent"):
        Run.open(tmp_path / "graph", "train-agent")
    assert Run.open(tmp_path / "graph").problem.command == "train-graph"
    facts = tmp_path / "graph" / "run.json"
    facts.write_text(facts.read_text().replace("train-graph", "train-robot"))
    with pytest.raises(RunError, match="is a run of train-robot, not of a command that this release has"):
        Run.open(tmp_path / "graph")


def test_a_run_that_does_not_record_its_command(tmp_path: Path) -> None:
    """As those of release 0.1."""
    for settings in (small_settings(tmp_path / "agent"), graph_settings(tmp_path / "graph")):
        run = Run.start(settings)
        facts = json.loads(run.record.path.read_text())
        command = facts.pop("command")
        run.record.path.write_text(json.dumps(facts))
        assert Run.open(run.path).problem.command == command
        assert finish(Run.resume(run.path))


def test_the_config_records_how_the_data_was_collected(tmp_path: Path) -> None:
    corridor(7).save(tmp_path / "seven.npz")
    run = Run.start(small_settings(tmp_path / "run", dataset=str(tmp_path / "seven.npz")))
    collector = read_config(str(run.config))["collector"]
    assert (collector["layout"], collector["trajectories"], collector["max_steps"]) == ("corridor", 7, 30)
    assert Run.open(run.path).settings.collector.trajectories == 7
    finish(Run.resume(run.path))


def test_the_config_of_data_of_ones_own_has_no_collector(tmp_path: Path) -> None:
    Dataset.from_arrays(torch.randn(8, 5).numpy(), [0, 1, 2, 1, 0, 0], [5, 1], num_actions=3).save(tmp_path / "own.npz")
    run = Run.start(small_settings(tmp_path / "run", dataset=str(tmp_path / "own.npz")))
    assert not {"collector", "graph"} & read_config(str(run.config)).keys()
    finish(Run.resume(run.path))
    assert run.complete.exists()


def test_every_kth_checkpoint_is_kept(tmp_path: Path) -> None:
    run_to_end(small_settings(tmp_path / "run", checkpoint_keep=2))
    kept = sorted((tmp_path / "run" / "checkpoints").iterdir())
    assert [path.name for path in kept] == ["step-00000010.safetensors", "step-00000020.safetensors"]
    assert [load_checkpoint(path)[0].step for path in kept] == [10, 20]
    run = Run.open(tmp_path / "run")
    early, metadata = run.load_agent(kept[0])
    last, _ = run.load_agent()
    assert metadata.step == 10
    observations = run.dataset.observations
    assert not (early.all_steps_to_goal(observations) == last.all_steps_to_goal(observations)).all()


def test_a_run_with_an_earlier_checkpoint_is_not_finished(tmp_path: Path) -> None:
    """As when a copy of an earlier checkpoint is put back: COMPLETE is of another step."""
    run = Run.start(small_settings(tmp_path / "run"))
    early = checkpoint_bytes(run.path)
    finish(run)
    last = checkpoint_bytes(run.path)
    assert run.finished
    run.checkpoint.write_bytes(early)
    assert not Run.open(run.path).finished
    finish(Run.resume(run.path))
    assert Run.open(run.path).finished
    assert checkpoint_bytes(run.path) == last
