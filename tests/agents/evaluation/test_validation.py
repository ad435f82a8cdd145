"""Runs that hold out trajectories: what they learn from, what they measure, and that measuring changes nothing."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import qrl
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.learners.registry import find_learner, list_learners
from qrl.agents.runs.run import Run
from qrl.agents.runs.trainer import Trainer
from qrl.common.errors import ConfigError
from qrl.envs.dataset import Dataset
from qrl.envs.split import split
from tests.agents.runs.running import checkpoint_bytes, finish, logged_rows, stop_at
from tests.agents.worlds import corridor, small_settings, without_layout

LEARNERS = [name for name in list_learners() if find_learner(name).settings.DATA == "trajectories"]
MEASURED = ["validation_loss", "hindsight_consistency", "hindsight_excess", "hindsight_spearman"]


def own_data(trajectories: int = 20) -> Dataset:
    return without_layout(corridor(trajectories))


def trained(run: Path, **changes: Any) -> Run:
    dataset = changes.pop("dataset", None) or own_data()
    run_ = Run.start(small_settings(run, **changes), dataset=dataset)
    finish(run_)
    return run_


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_validates(name: str, tmp_path: Path) -> None:
    """Both columns of metrics.csv and an evaluation of the checkpoint have the same finite values."""
    run = trained(tmp_path / "run", learner={"name": name})
    scores = find_learner(name).settings.LEARNS == "scores"
    rows = logged_rows(run.path)
    last = {key: rows[-1][key] for key in MEASURED}
    assert [key for key, value in last.items() if value] == (MEASURED[:1] if scores else MEASURED)
    evaluation = qrl.evaluate(run)
    for key, column in (("validation.loss", MEASURED[0]), ("hindsight.excess", MEASURED[2])):
        if rows[-1][column]:
            assert evaluation[key] == pytest.approx(float(last[column]), rel=1e-4, abs=1e-6)
            assert math.isfinite(float(last[column]))
    assert evaluation["validation.trajectories"] == 2
    assert (evaluation["hindsight.consistency"] is None) == scores
    assert not rows[0]["validation_loss"]  # only where it is evaluated


@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_learns_as_if_the_held_out_trajectories_were_not_there(name: str, tmp_path: Path) -> None:
    """Also: validating draws no random numbers and moves no weights of the learner."""
    dataset = own_data()
    holding = trained(tmp_path / "holding", dataset=dataset, learner={"name": name}, evaluate_every=3)
    without = trained(tmp_path / "without", dataset=split(dataset, 0.1)[0], learner={"name": name}, validation=0)
    state, expected = (run.trainer.learner.state_dict() for run in (holding, without))
    assert state.sampler == expected.sampler
    assert state.tensors.keys() == expected.tensors.keys()
    for key, tensor in expected.tensors.items():
        assert torch.equal(state.tensors[key], tensor), key
    assert torch.equal(holding.trainer.scaling.mean, without.trainer.scaling.mean)


def test_resuming_is_bit_exact(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole")
    run = Run.start(small_settings(tmp_path / "stopped"), dataset=own_data())
    stop_at(run, 12)
    finish(Run.resume(run.path))
    assert checkpoint_bytes(run.path) == checkpoint_bytes(whole.path)
    assert logged_rows(run.path) == logged_rows(whole.path)


def test_what_is_held_out_by_default(tmp_path: Path) -> None:
    def fraction(dataset: Dataset, **changes: Any) -> float | None:
        value: float | None = Run.prepare(small_settings(tmp_path / "run", **changes), dataset).settings.validation
        return value

    assert fraction(own_data()) == 0.1
    assert fraction(own_data(9)) == 0  # too few
    assert fraction(own_data(), validation=0) == 0
    assert fraction(own_data(3), validation=0.3) == 0.3
    assert fraction(corridor()) is None  # a world says what is exact


def test_runs_in_a_world_have_no_new_columns(tmp_path: Path) -> None:
    run = Run.prepare(small_settings(tmp_path / "run"), corridor())
    assert not set(MEASURED) & set(run.columns)
    assert run.trainer.validator is None


def test_trajectories_of_a_known_world_are_held_out_on_request(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", dataset=corridor(), validation=0.25)
    assert run.trainer.learner.num_samples == split(corridor(), 0.25)[0].num_transitions
    row = logged_rows(run.path)[-1]
    assert all(row[key] for key in ("success_rate", *MEASURED))
    evaluation = qrl.evaluate(run)
    assert evaluation["validation.trajectories"] == 10
    assert evaluation.success_rate is not None


def test_a_run_of_an_earlier_release_holds_out_nothing(tmp_path: Path) -> None:
    """Its settings have no such key, and its checkpoint has learned from everything."""
    run = trained(tmp_path / "run", validation=0)
    lines = [line for line in run.config.read_text().splitlines() if not line.startswith("validation:")]
    run.config.write_text("\n".join(lines))
    opened = Run.open(run.path)
    assert opened.settings.validation is None
    trainer = Trainer.build(opened.settings, opened.dataset)
    assert trainer.validator is None
    assert trainer.learner.num_samples == opened.dataset.num_transitions


def test_nothing_to_validate_is_noticed(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", validation=0)
    agent = TrainedAgent.open(run)
    assert agent.notices == [f"{run.path} holds out no trajectories of its data: nothing is validated"]
    assert agent.evaluate(Evaluator(agent.dataset))["validation.loss"] is None


def test_other_data_is_held_out_as_a_whole(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    other = own_data(7)
    evaluation = qrl.evaluate(run, dataset=other)
    assert evaluation["validation.trajectories"] == 7
    assert evaluation["hindsight.pairs"] == (other.lengths * (other.lengths + 1) // 2).sum()


def test_multipliers_of_transitions_stay_at_their_start(tmp_path: Path) -> None:
    """Those of held-out transitions are not trained; the network is."""
    learner = {"name": "qrl", "constraint": "each"}
    run = Run.prepare(small_settings(tmp_path / "run", learner=learner), own_data())
    trainer = run.trainer
    assert trainer.validator is not None
    before = trainer.score()
    for _ in range(5):
        trainer.learner.step()
    assert trainer.score()["validation_loss"] != before["validation_loss"]
    held_out: Any = trainer.validator._learner
    assert (held_out.constraint.raw == 1).all()
    assert not held_out.model.training


def test_every_evaluation_draws_the_same_batches(tmp_path: Path) -> None:
    trainer = Run.prepare(small_settings(tmp_path / "run"), own_data()).trainer
    assert trainer.score() == trainer.score()


def test_impossible_fractions(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="validation"):
        small_settings(tmp_path / "run", validation=0.6)
