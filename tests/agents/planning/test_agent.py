"""A trained agent as scripts and notebooks use it."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import qrl
from qrl.agents.errors import CheckpointError, RunError
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import TablePolicy
from qrl.agents.runs.run import Run
from qrl.envs.dataset import Dataset
from qrl.errors import RegistryError, ShapeError
from qrl.registry import list_q_models
from tests.agents.worlds import small_settings


@pytest.fixture(scope="module")
def agent(trained: Path) -> Agent:
    return qrl.load(trained)


@pytest.fixture(scope="module")
def observations(trained: Path) -> np.ndarray:
    return Dataset.load(trained / "dataset.npz").observations


def test_it_is_the_model_that_was_trained(agent: Agent, trained: Path, observations: np.ndarray) -> None:
    learner = Run.resume(trained).trainer.learner
    model = learner.model.eval()
    with torch.no_grad():
        rows = model.encode(learner.observations)  # scaled as in training
        expected = model.distance(rows[:5, None], None, rows[None, :7], None)
        steps = model.steps_to_goal(rows[:5, None], rows[None, :7])
    np.testing.assert_allclose(agent.distance(observations[:5, None], observations[None, :7]), expected, rtol=1e-5)
    np.testing.assert_allclose(agent.steps_to_goal(observations[:5, None], observations[None, :7]), steps, rtol=1e-5)


def test_actions_may_be_given(agent: Agent, observations: np.ndarray) -> None:
    full = agent.distance(observations[3], observations[9])
    assert full.shape == (4, 4)
    assert agent.distance(observations[3], observations[9], 2, 1) == pytest.approx(full[2, 1])
    np.testing.assert_allclose(agent.distance(observations[3], observations[9], action=2), full[2], rtol=1e-6)
    np.testing.assert_allclose(agent.distance(observations[3], observations[9], goal_action=[1]), full[None, :, 1])
    assert agent.distance(observations[3], observations[3], 2, 2) == 0


def test_it_acts_as_its_policy_table_says(agent: Agent, observations: np.ndarray) -> None:
    steps = agent.all_steps_to_goal(observations)
    table = TablePolicy.greedy(steps, observations, agent.seed).table
    ordered = np.sort(steps, -1)
    compared = 0
    for state in range(0, len(observations), 7):
        for goal in range(0, len(observations), 11):
            if ordered[state, goal, 1] - ordered[state, goal, 0] > 1e-4:  # not a matter of rounding
                assert agent.act(observations[state], observations[goal]) == table[state, goal]
                compared += 1
    assert compared > 50


def test_lists_are_accepted(agent: Agent, observations: np.ndarray) -> None:
    for goal in range(5, 50, 9):
        action = agent.act(observations[0].tolist(), observations[goal].tolist())
        assert action == agent.act(observations[0], observations[goal])


def test_wrong_shapes(agent: Agent, observations: np.ndarray) -> None:
    with pytest.raises(ShapeError, match=r"shape \(3,\), but the model needs \(\.\.\., 18\)"):
        agent.act(np.zeros(3), observations[0])
    with pytest.raises(ShapeError, match="give one observation and one goal"):
        agent.act(observations[:2], observations[0])
    for action in (4, -1, 1.5, [0, 7]):
        with pytest.raises(ShapeError, match="actions must be integers from 0 to 3"):
            agent.distance(observations[0], observations[1], action)
    with pytest.raises(ShapeError, match="observations must be finite"):
        agent.act(observations[0] * np.nan, observations[1])


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a training run"):
        qrl.load(tmp_path)


def rewrite(path: Path, change: Any) -> None:
    """Save a checkpoint again, with other metadata or tensors."""
    with safe_open(path, framework="pt") as file:
        content = json.loads(file.metadata()["qrl"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - it is no dict
    change(content, tensors)
    save_file(tensors, path, {"qrl": json.dumps(content)})


def _drop_weights(content: dict[str, Any], tensors: dict[str, Any]) -> None:
    tensors.pop(next(key for key in tensors if key.startswith("model.")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content, _: content["model_params"].update(hidden_sizes=[60_000, 60_000]), "should have shape"),
        (lambda content, _: content["model_params"].update(hidden_sizes=[10**7]), "less than or equal to 65536"),
        (lambda content, _: content.update(observation_dim=10**9), "should have shape"),
        (_drop_weights, "missing"),
        (lambda _, tensors: tensors.pop("observations.mean"), "observations.mean"),
        (lambda _, tensors: tensors.update({"observations.mean": torch.zeros(3)}), "does not fit"),
        (lambda _, tensors: tensors.update({"model.more": torch.zeros(3)}), 'Unexpected key.*"more"'),
    ],
)
def test_sizes_in_a_checkpoint_are_not_trusted(trained: Path, tmp_path: Path, change: Any, message: str) -> None:
    path = Path(shutil.copy(trained / "checkpoint.safetensors", tmp_path))
    rewrite(path, change)
    with pytest.raises(CheckpointError, match=message):
        Run.open(trained).load_agent(path)


def test_an_unknown_model_names_where_it_came_from(trained: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(trained / "checkpoint.safetensors", tmp_path))
    rewrite(path, lambda content, _: content.update(model_name="iqe-maxmeen"))
    with pytest.raises(RegistryError, match=r"did you mean 'iqe-maxmean'.*came from qrl"):
        Run.open(trained).load_agent(path)


@pytest.mark.parametrize("name", list_q_models())
def test_every_model_can_be_loaded(name: str, tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run", model={"name": name, "params": {"hidden_sizes": [8]}}))
    agent = qrl.load(run.path)
    observations, learner = run.dataset.observations, run.trainer.learner
    with torch.no_grad():
        model = learner.model.eval()
        rows = model.encode(learner.observations)
        expected = model.steps_to_goal(rows[0], rows[1]).numpy()
    np.testing.assert_allclose(agent.steps_to_goal(observations[0], observations[1]), expected, rtol=1e-4, atol=1e-5)
