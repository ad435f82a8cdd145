"""Trackers get a run's metrics, continue where it resumes, and cannot harm it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from qrl.agents.errors import RunError
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.runs import trackers
from qrl.agents.runs.metrics_file import TIMES
from qrl.agents.runs.record import RunRecord
from qrl.agents.runs.run import Run
from qrl.agents.runs.settings import TrainSettings
from qrl.agents.runs.trackers import Tracked, tags
from qrl.common.config_files import read_config
from qrl.common.errors import ConfigError
from tests.agents.runs.running import checkpoint_bytes, finish, logged_rows, run_to_end, stop_at
from tests.agents.worlds import small_settings


class Memory:
    """A tracker that remembers; `fails` from this step on."""

    runs: ClassVar[list["Memory"]] = []
    fails: ClassVar[int] = 10**9

    def __init__(self, run: Tracked) -> None:
        if self.fails == 0:
            raise ConnectionError("no network")
        self.identity, self.settings = run.identity, run.settings
        self.steps: list[int] = []
        self.tags: set[str] = set()
        self.reports: dict[str, Mapping[str, float]] = {}
        self.closed = False
        self.runs.append(self)

    def log(self, scalars: Mapping[str, float], step: int) -> None:
        if step >= self.fails:
            raise ConnectionError("no network")
        self.steps.append(step)
        self.tags |= scalars.keys()

    def report(self, title: str, text: str, values: Mapping[str, float], step: int) -> None:
        self.reports[title] = values

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> type[Memory]:
    """Instead of Weights & Biases."""
    monkeypatch.setattr(Memory, "runs", [])
    monkeypatch.setattr(trackers, "WandbTracker", Memory)
    monkeypatch.setattr(trackers, "find_spec", lambda name: name)
    return Memory


def test_names_are_separated_by_commas() -> None:
    assert TrainSettings().logger == ("tensorboard",)
    assert TrainSettings.load(overrides=["logger=tensorboard, wandb"]).logger == ("tensorboard", "wandb")
    assert TrainSettings.load(overrides=["logger="]).logger == ()
    assert TrainSettings.load(overrides=["logger=[trackio]"]).logger == ("trackio",)
    with pytest.raises(ConfigError, match=r"logger\.1: input should be 'tensorboard', 'wandb' or 'trackio'"):
        TrainSettings.load(overrides=["logger=wandb,mlflow"])


def test_tags_are_grouped() -> None:
    row = {"step": 5, "loss": 0.1, "success_rate": 0.9}
    assert tags(row, ["success_rate"]) == {"train/loss": 0.1, "eval/success_rate": 0.9}


def test_a_tracker_that_is_not_installed_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda name: None if name == "trackio" else name)
    advice = r"logger: trackio is not installed; install it with: pip install -e '\.\[trackio\]'"
    with pytest.raises(ConfigError, match=advice):
        Run.start(small_settings(tmp_path / "run", logger="trackio"))
    assert not (tmp_path / "run").exists()
    run = Run.start(small_settings(tmp_path / "run"))
    with pytest.raises(ConfigError, match=advice):
        Run.resume(run.path, {"logger": ("trackio",)})
    assert Run.open(run.path).settings.logger == ("tensorboard",)


def test_a_resumed_run_continues_in_its_trackers(tmp_path: Path, memory: type[Memory]) -> None:
    run = Run.start(small_settings(tmp_path / "a run", logger="wandb"))
    stop_at(run, 7)
    moved = run.path.rename(tmp_path / "moved")
    finish(Run.resume(moved))
    assert [tracker.steps for tracker in memory.runs] == [[3, 6], [9, 10, 12, 15, 18, 20]]
    first, second = memory.runs
    assert first.identity == second.identity
    assert first.identity.startswith("a-run-")
    assert first.closed
    assert second.closed
    assert first.settings["model"]["name"] == "iqe-maxmean"
    assert {"train/loss", "train/steps_per_second", "eval/success_rate"} <= second.tags
    assert not (moved / "tensorboard").exists()


def test_the_logger_may_change_on_resume(tmp_path: Path, memory: type[Memory]) -> None:
    run = Run.start(small_settings(tmp_path / "run", logger=()))
    stop_at(run, 7)
    assert "tracker_run" not in run.record.read()
    finish(Run.resume(run.path, {"logger": ("wandb",)}))
    assert [tracker.steps for tracker in memory.runs] == [[9, 10, 12, 15, 18, 20]]
    assert read_config(str(run.config))["logger"] == ["wandb"]


def test_a_failing_tracker_costs_its_copy_only(
    tmp_path: Path, memory: type[Memory], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_to_end(small_settings(tmp_path / "plain"))
    monkeypatch.setattr(memory, "fails", 9)
    run_to_end(small_settings(tmp_path / "run", logger="tensorboard,wandb"))
    assert memory.runs[0].steps == [3, 6]
    error = capsys.readouterr().err
    assert error.count("warning: wandb has failed") == 1
    assert "ConnectionError: no network" in error
    assert logged_rows(tmp_path / "run") == logged_rows(tmp_path / "plain")
    assert checkpoint_bytes(tmp_path / "run") == checkpoint_bytes(tmp_path / "plain")
    assert Run.open(tmp_path / "run").finished
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("train/loss")] == [3, 6, 9, 10, 12, 15, 18, 20]


@pytest.mark.parametrize("leave", [False, True])
def test_all_is_on_disk_before_a_tracker_ends(
    tmp_path: Path, memory: type[Memory], monkeypatch: pytest.MonkeyPatch, leave: bool
) -> None:
    run = Run.start(small_settings(tmp_path / "run", logger="wandb", checkpoint_every=100))
    on_disk = []
    monkeypatch.setattr(memory, "close", lambda self: on_disk.append((run.step, run.complete.exists())))
    for row in run.train():
        if leave and row["step"] == 9:
            break
    assert on_disk == ([(9, False)] if leave else [(20, True)])


def test_a_tracker_that_cannot_be_started(
    tmp_path: Path, memory: type[Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "fails", 0)
    run = Run.start(small_settings(tmp_path / "run", logger="wandb"))
    with pytest.raises(RunError, match=r"logger: wandb cannot be started \(ConnectionError: no network\); .*--resume"):
        finish(run)
    assert run.step == 0
    finish(Run.resume(run.path, {"logger": ("tensorboard",)}))
    assert Run.open(run.path).finished


def test_an_evaluation_is_one_card(tmp_path: Path, memory: type[Memory]) -> None:
    run_to_end(small_settings(tmp_path / "run", logger="tensorboard,wandb"))
    trained = TrainedAgent.open(tmp_path / "run")
    results = trained.evaluate(Evaluator(trained.dataset), references=False).results
    trained.log(results)
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert {tag.split("/")[0] for tag in events.Tags()["scalars"]} == {"train", "eval"}
    assert len(events.Tags()["scalars"]) == len(Run.open(tmp_path / "run").columns) - 1  # all but the step
    assert not {f"train/{key}" for key in TIMES} - set(events.Tags()["scalars"])
    assert events.Tags()["tensors"] == ["evaluation/exhaustive"]
    (event,) = events.Tensors("evaluation/exhaustive")
    assert event.step == 20
    assert "success rate" in event.tensor_proto.string_val[0].decode()
    assert memory.runs[-1].reports == {"evaluation/exhaustive": results.scalars()}
    assert memory.runs[-1].identity == memory.runs[0].identity


def test_a_damaged_identity_is_refused(tmp_path: Path) -> None:
    record = RunRecord(tmp_path / "run.json")
    record.write({"tracker_run": "../elsewhere"})
    with pytest.raises(ValueError, match=r"run\.json is damaged"):
        record.read()


# The trackers themselves, without a network or an account. In a process of its own: they start threads and processes.
PROGRAM = """
import sys
from pathlib import Path
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.runs.run import Run
from tests.agents.runs.running import finish, stop_at
from tests.agents.worlds import small_settings

run = Run.start(small_settings(Path("run"), logger=sys.argv[1]))
stop_at(run, 7)
finish(Run.resume(run.path))
trained = TrainedAgent.open(run.path)
trained.log(trained.evaluate(Evaluator(trained.dataset), references=False).results)
"""


def track(name: str, folder: Path, **environment: str) -> str:
    """Train, stop, resume and evaluate; returns the name of the run."""
    root = str(Path(__file__).parents[3])
    program = [sys.executable, "-c", PROGRAM, name]
    variables = {"PATH": "/usr/bin:/bin", "PYTHONPATH": root, "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(program, cwd=folder, env=variables | environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "warning" not in run.stderr.lower()
    identity: str = json.loads((folder / "run" / "run.json").read_text())["tracker_run"]
    return identity


def test_weights_and_biases_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    identity = track("wandb", tmp_path, WANDB_MODE="offline", WANDB_ERROR_REPORTING="false")
    files = sorted((tmp_path / "run" / "wandb").glob(f"offline-run-*-{identity}*/run-{identity}.wandb"))
    history, summary = [], {}
    for file in files:
        for record in wandb_records(file):
            if record.WhichOneof("record_type") == "history":
                history.append({"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item})
            for item in record.summary.update:
                summary["/".join(item.nested_key) or item.key] = item.value_json
    assert [int(row["step"]) for row in history] == [3, 6, 9, 10, 12, 15, 18, 20]
    rows = logged_rows(tmp_path / "run")
    assert [float(row["train/loss"]) for row in history] == [float(row["loss"]) for row in rows]
    assert [float(row["eval/success_rate"]) for row in history if "eval/success_rate" in row] == [
        float(row["success_rate"]) for row in rows if row["success_rate"]
    ]
    assert any("evaluation" in key for key in summary)


def wandb_records(path: Path) -> list[Any]:
    """Of an offline file: LevelDB's log format, in blocks of 32 KiB."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, records, whole = path.read_bytes(), 7, [], b""
    while place + 7 <= len(data):
        if 2**15 - place % 2**15 < 7:
            place += 2**15 - place % 2**15
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # complete, or the last part
            record = Record()
            record.ParseFromString(whole)
            records.append(record)
            whole = b""
    return records


def test_trackio_locally(tmp_path: Path) -> None:
    pytest.importorskip("trackio", reason="the extra trackio is not installed: it requires an older Pillow")
    identity = track("trackio", tmp_path, TRACKIO_DIR=str(tmp_path / "trackio"))
    program = (
        "import json, sys; from trackio.sqlite_storage import SQLiteStorage\n"
        "print(json.dumps(SQLiteStorage.get_logs('qrl', sys.argv[1])))"
    )
    variables = {"TRACKIO_DIR": str(tmp_path / "trackio"), "HOME": str(tmp_path)}
    shown = subprocess.run(
        [sys.executable, "-c", program, identity], env=variables, capture_output=True, text=True, check=True
    )
    logs = json.loads(shown.stdout)
    losses = [(log["step"], log["train/loss"]) for log in logs if "train/loss" in log]
    assert losses == [(int(row["step"]), float(row["loss"])) for row in logged_rows(tmp_path / "run")]
    assert "success rate" in str([log for log in logs if "evaluation/exhaustive" in log])
