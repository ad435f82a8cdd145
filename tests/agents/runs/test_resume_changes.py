"""What a run may change when it is resumed, and runs that start from another one."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from qrl.agents.errors import CheckpointError, RunError
from qrl.agents.runs.run import Run
from qrl.common.errors import ConfigError, FileError, UserError
from qrl.common.locks import locked
from qrl.envs.errors import DatasetError
from tests.agents.runs.running import checkpoint_bytes, finish, logged_rows, run_to_end, stop_at
from tests.agents.worlds import corridor, graph_settings, small_settings

LONGER = {"learner": {"min_steps": 40}}


def test_moved_data_is_accepted_if_it_is_the_same(tmp_path: Path) -> None:
    old, new = tmp_path / "old.npz", tmp_path / "elsewhere" / "new.npz"
    corridor().save(old)
    Run.start(small_settings(tmp_path / "run", dataset=str(old)))
    new.parent.mkdir()
    old.rename(new)
    with pytest.raises(DatasetError, match=r"old\.npz, the dataset of .*run, is missing; .*--resume .* dataset=FILE"):
        Run.resume(tmp_path / "run")
    corridor(41).save(tmp_path / "other.npz")
    with pytest.raises(CheckpointError, match=r"was trained on other data than .*other\.npz; .*dataset=FILE"):
        Run.resume(tmp_path / "run", {"dataset": str(tmp_path / "other.npz")})
    finish(Run.resume(tmp_path / "run", {"dataset": str(new)}))
    run = Run.resume(tmp_path / "run")  # the new path is recorded
    assert run.complete.exists()
    assert run.dataset_path == new
    assert json.loads(run.record.path.read_text())["dataset_path"] == "../elsewhere/new.npz"


def test_data_that_moved_together_with_the_run_is_found(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    corridor().save(project / "d.npz")
    Run.start(small_settings(project / "runs" / "first", dataset=str(project / "d.npz")))
    project.rename(tmp_path / "renamed")
    run = Run.resume(tmp_path / "renamed" / "runs" / "first")
    assert run.dataset_path.resolve() == tmp_path / "renamed" / "d.npz"
    finish(run)
    assert run.complete.exists()


@pytest.mark.parametrize("make_settings", [small_settings, graph_settings])
def test_a_complete_run_can_be_extended(make_settings: object, tmp_path: Path) -> None:
    assert callable(make_settings)
    path = tmp_path / "run"
    rows = run_to_end(make_settings(path))
    lr = rows[0]["lr"] / (0.5 * (1 + math.cos(math.pi * 2 / 20)))  # row 3 is logged with the rate of step 2
    run = Run.resume(path, LONGER)
    assert run.trainer.learner.num_steps == 40
    more = finish(run)
    assert more[0]["step"] == 21
    assert more[-1]["step"] == 40
    for row in more:
        assert row["lr"] == pytest.approx(lr * 0.5 * (1 + math.cos(math.pi * (row["step"] - 1) / 40)))
    facts = json.loads(run.record.path.read_text())
    assert facts["extensions"] == [{"step": 20, "num_steps_before": 20}]
    assert facts["num_steps"] == 40
    assert json.loads(run.complete.read_text())["step"] == 40
    assert Run.open(path).settings.learner.min_steps == 40
    assert [int(row["step"]) for row in logged_rows(path)][-1] == 40
    finish(Run.resume(path, {"learner": {"min_steps": 45}}))
    assert len(json.loads(run.record.path.read_text())["extensions"]) == 2


def test_an_extended_run_resumes_bit_exactly(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_to_end(small_settings(whole))
    shutil.copytree(whole, parts)
    finish(Run.resume(whole, LONGER))
    stop_at(Run.resume(parts, LONGER), 27)
    assert not (parts / "COMPLETE").exists()
    finish(Run.resume(parts))
    assert logged_rows(parts) == logged_rows(whole)
    assert checkpoint_bytes(parts) == checkpoint_bytes(whole)
    assert json.loads((parts / "run.json").read_text())["extensions"] == [{"step": 20, "num_steps_before": 20}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learner": {"min_steps": 10}}, r"learner\.min_steps may be raised, not lowered to 10"),
        ({"learner": {"epochs": 0.001}}, r"learner\.epochs may be raised, not lowered to 0\.001"),
        ({"learner": {"epochs": 0.02}}, r"stays at 20 steps, the larger of learner\.min_steps and learner\.epochs"),
        ({"dataset": "absent.npz"}, r"absent\.npz cannot be read"),
    ],
)
def test_changes_that_are_refused_change_nothing(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    corridor().save(tmp_path / "d.npz")
    run = Run.start(small_settings(tmp_path / "run", dataset=str(tmp_path / "d.npz")))
    before = run.config.read_bytes(), run.record.path.read_bytes()
    with pytest.raises(UserError, match=message):
        Run.resume(run.path, changes)
    assert (run.config.read_bytes(), run.record.path.read_bytes()) == before
    assert Run.resume(run.path).dataset_path == tmp_path / "d.npz"


def test_a_run_in_use_is_not_changed(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    before = run.config.read_bytes(), run.record.path.read_bytes()
    with locked(run.path, RunError), pytest.raises(RunError, match="in use by another process"):
        Run.resume(run.path, LONGER)
    assert (run.config.read_bytes(), run.record.path.read_bytes()) == before


def test_kept_checkpoints_can_be_asked_for_later(tmp_path: Path) -> None:
    run_to_end(small_settings(tmp_path / "run"))
    finish(Run.resume(tmp_path / "run", {"checkpoint_keep": 1, **LONGER}))
    kept = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert kept == [f"step-000000{step}.safetensors" for step in (25, 30, 35, 40)]


def test_changes_keep_where_the_run_comes_from(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    stop_at(run, 5)
    facts = run.record.read()
    foreign = facts | {"versions": {"qrl": "0.1.0"}, "git_commit": "abc"}
    run.record.path.write_text(json.dumps(foreign))
    stop_at(Run.resume(run.path, LONGER), 6)
    stop_at(Run.resume(run.path), 7)
    after = run.record.read()
    assert (after["versions"], after["git_commit"]) == ({"qrl": "0.1.0"}, "abc")
    assert after["resumed"] == [{"step": 5, "versions": facts["versions"], "git_commit": facts["git_commit"]}]


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    for damaged in ("[]", "{", "null"):
        run.record.path.write_text(damaged)
        with pytest.raises(FileError, match=r"run\.json is damaged"):
            Run.open(run.path)
    run.record.path.unlink()
    assert Run.open(run.path).problem.command == "train-agent"


def test_leaving_the_loop_saves_and_the_run_continues(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_to_end(small_settings(whole))
    run = Run.start(small_settings(parts))
    for _ in range(3):
        for row in run.train():
            assert row["step"] == run.step or row["step"] > run.step
            break
    assert run.step == 9
    finish(run)
    assert logged_rows(parts) == logged_rows(whole)
    assert checkpoint_bytes(parts) == checkpoint_bytes(whole)


@pytest.mark.parametrize("step", [0, 5, 7])  # the first, and the first after a checkpoint
def test_an_interrupted_step_is_repeated(step: int, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_to_end(small_settings(whole))
    run = Run.start(small_settings(parts))
    learner = run.trainer.learner
    after_step = learner.after_step

    def interrupted() -> None:
        after_step()
        if learner.steps_done == step:
            raise KeyboardInterrupt

    learner.after_step = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        finish(run)
    assert run.step == step // 5 * 5  # the last checkpoint
    finish(run)
    assert checkpoint_bytes(parts) == checkpoint_bytes(whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checkpoint_keep": 0}, "checkpoint_keep: .*greater than or equal to 1"),
        ({"learner": {"min_steps": 40.5}}, r"learner\.min_steps: .*integer"),
        ({"learner": {"epochs": "x"}}, r"learner\.epochs: .*number"),
        ({"learner": "iql"}, "cannot change settings: learner was"),
        ({"logger": "tensorboard,nonsense"}, "nonsense"),
    ],
)
def test_changes_are_checked(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    before = run.config.read_bytes(), run.record.path.read_bytes()
    with pytest.raises(UserError, match=message):
        Run.resume(run.path, changes)
    assert (run.config.read_bytes(), run.record.path.read_bytes()) == before


def test_other_settings_cannot_be_changed(tmp_path: Path) -> None:
    Run.start(small_settings(tmp_path / "run"))
    with pytest.raises(ConfigError, match=r"cannot change settings: seed was 0, now 5; learner\.lr was 0\.001, now 1"):
        Run.resume(tmp_path / "run", {"seed": 5, "learner": {"lr": 1, "min_steps": 40}})
    Run.resume(tmp_path / "run", {"seed": 0, "learner": {"lr": 0.001}})  # as they are


def test_a_warm_start_takes_over_weights_and_scaling(tmp_path: Path) -> None:
    other = Run.start(small_settings(tmp_path / "other", collector={"layout": "traps"}))
    finish(other)
    run = Run.start(small_settings(tmp_path / "run", seed=3), init=tmp_path / "other")
    weights, initial = load_file(other.checkpoint), load_file(run.checkpoint)
    names = [key.removeprefix("model.") for key in weights if key.startswith("model.")]
    assert len(names) > 5
    for name in names:
        assert torch.equal(initial[f"model.{name}"], weights[f"model.{name}"])
        assert torch.equal(initial[f"target.{name}"], weights[f"model.{name}"])
    scaling = ("observations.mean", "observations.scale")
    plain = load_file(Run.start(small_settings(tmp_path / "plain", seed=3)).checkpoint)
    assert not torch.equal(plain["observations.mean"], weights["observations.mean"])  # of another layout
    assert not any(key.startswith("optimizer.") for key in initial)
    assert run.trainer.learner.steps_done == 0
    assert run.record.read()["init"] == {"run": str(tmp_path / "other"), "step": 20}
    stop_at(run, 7)
    finish(Run.resume(run.path))
    final = load_file(run.checkpoint)
    for key in scaling:
        assert torch.equal(initial[key], weights[key])
        assert torch.equal(final[key], weights[key])
    whole = Run.start(small_settings(tmp_path / "whole", seed=3), init=tmp_path / "other")
    finish(whole)
    assert all(torch.equal(final[key], value) for key, value in load_file(whole.checkpoint).items())
    finish(Run.resume(run.path, {"learner": {"min_steps": 25}}))
    assert run.record.read()["init"] == {"run": str(tmp_path / "other"), "step": 20}  # also after an extension


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            {"name": "iqe-sum"},
            r"--init: .*checkpoint\.safetensors holds another model: model was 'iqe-maxmean'",
        ),
        (
            {"params": {"hidden_sizes": [8], "latent_size": 16}},
            r"params\.hidden_sizes was \[16, 16\], now \[8\]",
        ),
    ],
)
def test_a_warm_start_from_another_model_is_refused(model: dict[str, object], message: str, tmp_path: Path) -> None:
    Run.start(small_settings(tmp_path / "other"))
    with pytest.raises(CheckpointError, match=message):
        Run.start(small_settings(tmp_path / "run", model=model), init=tmp_path / "other")
    assert not (tmp_path / "run").exists()


def test_a_warm_start_from_other_observations_is_refused(tmp_path: Path) -> None:
    Run.start(graph_settings(tmp_path / "other", model={"name": "iqe-maxmean", "params": {"hidden_sizes": [16, 16]}}))
    with pytest.raises(CheckpointError, match=r"holds another model: observation_dim was 8, now 18"):
        Run.start(small_settings(tmp_path / "run"), init=tmp_path / "other")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("first", "second"), [("mbold", "qrl"), ("gcbc", "iql"), ("tmd", "mbold"), ("iql", "cmd")])
def test_the_weights_of_one_learner_start_another(first: str, second: str, tmp_path: Path) -> None:
    run_to_end(small_settings(tmp_path / "first", learner={"name": first}))
    run = Run.start(small_settings(tmp_path / "second", seed=3, learner={"name": second}), init=tmp_path / "first")
    weights, initial = (load_file(tmp_path / name / "checkpoint.safetensors") for name in ("first", "second"))
    copies = {"iql": ("model", "target", "value"), "mbold": ("model", "target")}.get(second, ("model",))
    keys = [key.removeprefix("model.") for key in weights if key.startswith("model.")]
    assert keys
    for module in copies:
        assert all(torch.equal(initial[f"{module}.{key}"], weights[f"model.{key}"]) for key in keys)
    assert not any(key.startswith("optimizer.") for key in initial)
    assert finish(run)[-1]["step"] == 20
