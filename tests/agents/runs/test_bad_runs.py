"""What runs refuse or survive: user mistakes, damaged files and losses that are not finite."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from qrl.agents.errors import CheckpointError, RunError, TrainingError
from qrl.agents.runs.checkpoint import load_checkpoint
from qrl.agents.runs.run import Run
from qrl.agents.runs.trainer import Trainer
from qrl.common.errors import ConfigError, FileError, RegistryError, UserError
from qrl.envs.errors import DatasetError, LayoutError
from qrl.errors import ShapeError
from tests.agents.runs.running import finish, run_to_end
from tests.agents.worlds import SMALL, corridor, small_settings


def test_runs_are_not_overwritten(tmp_path: Path) -> None:
    settings = small_settings(tmp_path / "run")
    run_to_end(settings)
    before = (tmp_path / "run" / "metrics.csv").read_text()
    with pytest.raises(RunError, match=r"holds a training run; resume it with --resume .*run=.*--force"):
        Run.start(settings)
    assert (tmp_path / "run" / "metrics.csv").read_text() == before
    run = Run.start(settings, force=True)
    assert not run.metrics.path.exists()


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match="exists and is not a training run; name another folder"):
        Run.start(small_settings(tmp_path / "other"), force=True)
    assert (tmp_path / "other" / "thesis.tex").read_text() == "precious"
    with pytest.raises(RunError, match=r"other is not a training run: it has no config\.yaml"):
        Run.resume(tmp_path / "other")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": {"name": "nothing"}}, RegistryError, "unknown model 'nothing'"),
        ({"model": {"params": {"latent_size": 15}}}, ShapeError, "15.*cannot be split"),
        ({"collector": {"layout": "nowhere"}}, LayoutError, "'nowhere'"),
        ({"dataset": "absent.npz"}, DatasetError, r"absent\.npz cannot be read"),
        ({"device": "toaster"}, ConfigError, "device: 'toaster' cannot be used here"),
    ],
)
def test_mistakes_leave_no_folder(
    changes: dict[str, Any], error: type[UserError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        Run.start(small_settings(tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()


def test_a_nan_loss_names_step_and_model_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    rows = run.train()
    while run.trainer.learner.steps_done < 6:
        next(rows)
    with torch.no_grad():
        next(run.trainer.learner.model.parameters()).fill_(float("nan"))
    with pytest.raises(
        TrainingError, match=r"model iqe-maxmean: the loss is nan at step 7; .*checkpoint\.safetensors keeps"
    ):
        list(rows)
    assert load_checkpoint(run.checkpoint)[0].step == 5
    finish(Run.resume(tmp_path / "run"))
    assert run.complete.exists()


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run", learner={"lr": 1e38}, checkpoint_every=1))
    with pytest.raises(TrainingError, match=r"model\.\S+ is not finite after step 1; .*keeps the last good state"):
        finish(run)
    assert load_checkpoint(run.checkpoint)[0].step == 0


def test_settings_edited_on_disk_are_refused(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    run.config.write_text(run.config.read_text().replace("polyak: 0.9", "polyak: 0.5"))
    with pytest.raises(CheckpointError, match=r"other settings: learner\.polyak was 0\.9, now 0\.5"):
        Run.resume(tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"does not belong to .*: learner\.polyak was 0\.9, now 0\.5"):
        Run.open(tmp_path / "run").load_agent()


def test_a_run_that_was_trained_meanwhile_is_refused(tmp_path: Path) -> None:
    Run.start(small_settings(tmp_path / "run"))
    stale = Run.resume(tmp_path / "run")
    assert stale.trainer.learner.steps_done == 0
    finish(Run.resume(tmp_path / "run"))
    with pytest.raises(RunError, match="has been trained to step 20 meanwhile; resume it again"):
        finish(stale)


def test_an_interrupted_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Run.start(small_settings(tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    Run.start(small_settings(tmp_path / "run"))


def test_names_that_cannot_be_folders(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run: .* is not a path: it is longer than a file system allows$"):
        Run.start(small_settings(tmp_path / ("x" * 300)))
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="cannot be written: Not a directory"):
        Run.start(small_settings(tmp_path / "file" / "run"))


def test_a_changed_dataset_is_refused(tmp_path: Path) -> None:
    corridor().save(tmp_path / "d.npz")
    Run.start(small_settings(tmp_path / "run", dataset=str(tmp_path / "d.npz")))
    corridor(trajectories=41).save(tmp_path / "d.npz")
    with pytest.raises(CheckpointError, match=r"was trained on other data than .*d\.npz"):
        Run.resume(tmp_path / "run")


def damage(path: Path, kind: str) -> None:
    content = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif kind == "text":
        path.write_text("hello")
    elif kind == "newer":
        path.write_bytes(content.replace(b'\\"format_version\\": 2', b'\\"format_version\\": 9'))
    else:
        save_file({"x": torch.zeros(2)}, path)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("truncated", "cannot be read as a checkpoint"),
        ("text", "cannot be read as a checkpoint"),
        ("newer", "has format version 9, but this release of qrl reads version 2"),
        ("foreign", "is a safetensors file, but not a checkpoint of qrl"),
    ],
)
def test_bad_checkpoints(kind: str, message: str, tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    damage(run.checkpoint, kind)
    with pytest.raises(CheckpointError, match=message):
        Run.resume(tmp_path / "run")


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    other = Run.start(small_settings(tmp_path / "other", model={"params": {**SMALL, "hidden_sizes": [8, 8]}}))
    run.checkpoint.write_bytes(other.checkpoint.read_bytes())
    with pytest.raises(CheckpointError, match=r"other settings: model\.params\.hidden_sizes was \[8, 8\]"):
        Run.resume(tmp_path / "run")


def test_a_missing_plugin_is_named(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    run.config.write_text(run.config.read_text().replace("iqe-maxmean", "my-own-model"))
    facts = json.loads(run.record.path.read_text())
    run.record.path.write_text(json.dumps({**facts, "model_origin": "my-plugin 1.0"}))
    with pytest.raises(RegistryError, match=r"unknown model 'my-own-model'.*with --plugin .*came from my-plugin 1\.0"):
        Run.resume(tmp_path / "run")


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    before = run.checkpoint.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device"):
        run.trainer.save(run.checkpoint)
    assert run.checkpoint.read_bytes() == before
    assert not [name for name in os.listdir(run.path) if name.startswith(".checkpoint")]
