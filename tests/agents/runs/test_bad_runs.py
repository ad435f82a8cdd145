"""What runs refuse or survive, and what they say: a user's mistakes, damaged files, losses that are no numbers."""

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from qrl.agents.errors import CheckpointError, RunError, TrainingError
from qrl.agents.runs.checkpoint import load_checkpoint
from qrl.agents.runs.training import AgentTraining, resume, start, train
from qrl.common.errors import FileError
from qrl.scripts.train_agent import main as train_agent
from tests.agents.worlds import SMALL, corridor, small_settings


def test_runs_are_not_overwritten(tmp_path: Path) -> None:
    settings = small_settings(tmp_path / "run")
    list(train(*start(settings)))
    before = (tmp_path / "run" / "metrics.csv").read_text()
    with pytest.raises(RunError, match="holds a training run; go on with --resume"):
        start(settings)
    assert (tmp_path / "run" / "metrics.csv").read_text() == before
    folder, _ = start(settings, force=True)
    assert not folder.metrics.exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match="is no training run"):
        start(small_settings(tmp_path / "other"), force=True)
    assert (tmp_path / "other" / "thesis.tex").exists()
    with pytest.raises(RunError, match=r"it has no config\.yaml"):
        resume(tmp_path / "other")


def test_mistakes_leave_no_folder(tmp_path: Path) -> None:
    for changes in (
        {"model": {"name": "nothing"}},
        {"model": {"params": {"latent_size": 15}}},
        {"collector": {"layout": "nowhere"}},
        {"dataset": str(tmp_path / "absent.npz")},
        {"device": "toaster"},
    ):
        with pytest.raises(ValueError, match=r"nothing|cannot be split|nowhere|absent|toaster"):
            start(small_settings(tmp_path / "run", **changes))
        assert not (tmp_path / "run").exists()


def test_a_nan_loss_names_step_and_model_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    folder, training = start(small_settings(tmp_path / "run"))
    steps = train(folder, training)
    while training.learner.step < 6:
        next(steps)
    with torch.no_grad():
        next(training.learner.model.parameters()).fill_(float("nan"))
    with pytest.raises(
        TrainingError, match=r"model iqe-maxmean: the loss is nan at step 7; .*checkpoint\.safetensors keeps"
    ):
        list(steps)
    assert load_checkpoint(folder.checkpoint)[0].step == 5
    list(train(*resume(tmp_path / "run")))
    assert folder.complete.exists()


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path) -> None:
    folder, training = start(small_settings(tmp_path / "run", learner={"lr": 1e38}, checkpoint_every=1))
    with pytest.raises(TrainingError, match=r"weights are not finite after step 1; .*keeps the last good state"):
        list(train(folder, training))
    assert load_checkpoint(folder.checkpoint)[0].step == 0


def test_settings_edited_on_disk_are_refused(tmp_path: Path) -> None:
    folder, _ = start(small_settings(tmp_path / "run"))
    folder.config.write_text(folder.config.read_text().replace("polyak: 0.9", "polyak: 0.5"))
    with pytest.raises(CheckpointError, match=r"other settings: learner\.polyak was 0\.9, now 0\.5"):
        resume(tmp_path / "run")


def test_a_run_that_went_on_meanwhile_is_refused(tmp_path: Path) -> None:
    start(small_settings(tmp_path / "run"))
    stale = resume(tmp_path / "run")
    list(train(*resume(tmp_path / "run")))
    with pytest.raises(RunError, match="has gone on to step 20 meanwhile"):
        list(train(*stale))


def test_an_interrupted_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AgentTraining, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            start(small_settings(tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    start(small_settings(tmp_path / "run"))


def test_names_that_cannot_be_folders(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be made"):
        start(small_settings(tmp_path / ("x" * 300)))


def test_a_changed_dataset_is_refused(tmp_path: Path) -> None:
    corridor().save(tmp_path / "d.npz")
    start(small_settings(tmp_path / "run", dataset=str(tmp_path / "d.npz")))
    corridor(trajectories=41).save(tmp_path / "d.npz")
    with pytest.raises(CheckpointError, match="not the one that this run was trained on"):
        resume(tmp_path / "run")


def damage(path: Path, kind: str) -> None:
    content = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif kind == "text":
        path.write_text("hello")
    elif kind == "newer":
        path.write_bytes(content.replace(b'\\"format_version\\": 1', b'\\"format_version\\": 9'))
    else:
        save_file({"x": torch.zeros(2)}, path)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("truncated", "cannot be read as a checkpoint"),
        ("text", "cannot be read as a checkpoint"),
        ("newer", "has format version 9, but this release of qrl reads version 1"),
        ("foreign", "no checkpoint of qrl"),
    ],
)
def test_bad_checkpoints(kind: str, message: str, tmp_path: Path) -> None:
    folder, _ = start(small_settings(tmp_path / "run"))
    damage(folder.checkpoint, kind)
    with pytest.raises(CheckpointError, match=message):
        resume(tmp_path / "run")


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    folder, _ = start(small_settings(tmp_path / "run"))
    other, _ = start(small_settings(tmp_path / "other", model={"params": {**SMALL, "hidden_sizes": [8, 8]}}))
    folder.checkpoint.write_bytes(other.checkpoint.read_bytes())
    with pytest.raises(CheckpointError, match=r"other settings: model\.params\.hidden_sizes was \[8, 8\]"):
        resume(tmp_path / "run")


def test_a_missing_plugin_is_named(tmp_path: Path) -> None:
    folder, _ = start(small_settings(tmp_path / "run"))
    folder.config.write_text(folder.config.read_text().replace("iqe-maxmean", "my-own-model"))
    facts = json.loads(folder.facts.read_text())
    folder.facts.write_text(json.dumps({**facts, "model_origin": "my-plugin 1.0"}))
    with pytest.raises(ValueError, match=r"unknown model 'my-own-model'.*with --plugin .*came from my-plugin 1\.0"):
        resume(tmp_path / "run")


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, training = start(small_settings(tmp_path / "run"))
    before = folder.checkpoint.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device"):
        training.save(folder.checkpoint)
    assert folder.checkpoint.read_bytes() == before
    assert not [name for name in os.listdir(folder.path) if name.startswith(".checkpoint")]


def test_bad_settings_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert train_agent(["learner.goals.future=0.9"]) == 2
    assert "learner.goals: current + future + random must be 1, but are 1.41" in capsys.readouterr().err
    assert train_agent(["learner.lrr=1"]) == 2
    assert "did you mean 'learner.lr'" in capsys.readouterr().err
