"""A trained agent as scripts and notebooks use it."""

from pathlib import Path

import numpy as np
import pytest
import torch

import qrl
from qrl.agents.errors import LearnerError
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import TablePolicy
from qrl.agents.runs.run import Run
from qrl.envs.dataset import Dataset
from qrl.errors import ContractError, ShapeError


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


def test_the_scores_of_actions_are_minus_the_steps(agent: Agent, observations: np.ndarray) -> None:
    scores = agent.action_scores(observations[:3, None], observations[None, :4])
    np.testing.assert_array_equal(scores, -agent.steps_to_goal(observations[:3, None], observations[None, :4]))


def test_an_agent_that_only_scores_actions(agent: Agent, observations: np.ndarray) -> None:
    """Its scores are log-probabilities, and its model's outputs are no distances."""
    policy = Agent(agent.model, agent.scaling, agent.seed, learns="scores")
    steps = agent.steps_to_goal(observations[3], observations[9]).astype(float)
    expected = -steps - np.log(np.exp(-steps).sum())
    np.testing.assert_allclose(policy.action_scores(observations[3], observations[9]), expected, rtol=1e-5)
    for goal in range(5, 50, 9):
        action = policy.act(observations[0], observations[goal])
        assert action == agent.act(observations[0], observations[goal])
        assert action == policy.action_scores(observations[0], observations[goal]).argmax()
    for query in (policy.distance, policy.steps_to_goal):
        with pytest.raises(LearnerError, match="learns scores of actions, not distances; ask for action_scores"):
            query(observations[0], observations[1])
    with pytest.raises(LearnerError, match="not distances"):
        policy.all_steps_to_goal(observations)
    np.testing.assert_array_equal(policy.all_costs(observations), agent.all_steps_to_goal(observations))


def test_lists_are_accepted(agent: Agent, observations: np.ndarray) -> None:
    for goal in range(5, 50, 9):
        action = agent.act(observations[0].tolist(), observations[goal].tolist())
        assert action == agent.act(observations[0], observations[goal])


def test_wrong_shapes(agent: Agent, observations: np.ndarray) -> None:
    with pytest.raises(ShapeError, match=r"shape \(3,\), but the agent needs \(\.\.\., 18\)"):
        agent.act(np.zeros(3), observations[0])
    with pytest.raises(ShapeError, match="give one observation and one goal"):
        agent.act(observations[:2], observations[0])
    for action in (4, -1, 1.5, [0, 7]):
        with pytest.raises(ShapeError, match="actions must be integers from 0 to 3"):
            agent.distance(observations[0], observations[1], action)
    with pytest.raises(ShapeError, match="observations must be finite"):
        agent.act(observations[0] * np.nan, observations[1])


def test_no_action_is_chosen_from_nan(trained: Path, observations: np.ndarray) -> None:
    agent = qrl.load(trained)
    next(agent.model.parameters()).fill_(float("nan"))
    for query in (agent.act, agent.steps_to_goal, agent.action_scores, agent.distance):
        with pytest.raises(ContractError, match="LatentQModel returned NaN"):
            query(observations[0], observations[1])
