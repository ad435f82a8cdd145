from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from qrl import QModelSpec
from qrl.agents.evaluation.training_scores import score_planning
from qrl.agents.learners.iql import IqlLearner, expectile_loss
from qrl.agents.learners.settings import GoalSettings, IqlSettings
from qrl.agents.planning.planner import all_steps_to_goal
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from tests.agents.learners import naive_objectives, ring
from tests.agents.learners.small_learners import SHORT, all_distances, check_step, make_learner, train_table
from tests.agents.learners.tables import Table, ids
from tests.agents.worlds import every_transition

values = st.lists(st.floats(-3, 3), min_size=1, max_size=8)


def test_expectile_loss_by_hand() -> None:
    u = torch.tensor([2.0, -1.0, 0.0])
    assert expectile_loss(u, 0.9).item() == pytest.approx((0.9 * 4 + 0.1 * 1) / 3)


@given(values)
def test_the_expectile_one_half_is_half_the_squared_error(u: list[float]) -> None:
    assert expectile_loss(torch.tensor(u), 0.5).item() == pytest.approx(np.mean(np.square(u)) / 2, abs=1e-6)


def best_value(q: list[float], expectile: float) -> float:
    """The v of the least expectile loss of q - v: where the weighted differences sum to 0."""
    low, high = min(q), max(q)
    for _ in range(40):
        v = torch.tensor((low + high) / 2, dtype=torch.float64, requires_grad=True)
        expectile_loss(torch.tensor(q, dtype=torch.float64) - v, expectile).backward()
        assert v.grad is not None
        low, high = (low, v.item()) if v.grad > 0 else (v.item(), high)
    return low


@given(values)
def test_expectiles_lie_between_the_mean_and_the_maximum(q: list[float]) -> None:
    mean, upper, highest = (best_value(q, expectile) for expectile in (0.5, 0.9, 1 - 1e-7))
    assert mean == pytest.approx(np.mean(q), abs=1e-4)
    assert mean - 1e-6 <= upper <= highest + 1e-6
    assert highest == pytest.approx(max(q), abs=1e-4)


@pytest.mark.parametrize("model", ["iqe-sum", "mrn-fixed", "unconstrained-state-disc-sigmoid"])
def test_a_step_equals_the_naive_step(model: str) -> None:
    settings = IqlSettings(**{**SHORT, "batch_size": 32})
    learner = make_learner(IqlLearner, settings, model)
    with torch.no_grad():  # all three differ, as they will in training
        for network, factor in ((learner.value, 0.5), (learner.target, 0.8)):
            for parameter in network.parameters():
                parameter.mul_(factor)
    naive = check_step(learner, naive_objectives.iql_loss, "model", "value")
    assert all(parameter.grad is None for parameter in learner.target.parameters())
    # Both networks are in one optimizer, and the target follows the model.
    for moved, old in zip(learner.value.parameters(), naive.value.parameters(), strict=True):
        assert not torch.equal(moved, old) or not old.grad.any()  # type: ignore[union-attr]
    for averaged, old, new in zip(
        learner.target.parameters(), naive.target.parameters(), learner.model.parameters(), strict=True
    ):
        torch.testing.assert_close(averaged, 0.9 * old + 0.1 * new)


def learn(expectile: float, model: Table, dataset: Dataset, goals: GoalSettings, **values: Any) -> IqlLearner:
    common = {"discount": model.spec.discount, "batch_size": 512, "polyak": 0.3, "min_steps": 500, "epochs": 0.01}
    settings = IqlSettings.from_values({**common, "expectile": expectile, "goals": goals, **values}, "test")
    return train_table(IqlLearner, settings, model, dataset)


def expectile_fixed_point(expectile: float, discount: float) -> Tensor:
    """The distances of the ring, if both actions of a state are seen equally often."""
    s, a, g, b = np.indices((ring.STATES, ring.ACTIONS, ring.STATES, ring.ACTIONS))
    following = (s + a) % ring.STATES
    d = np.zeros(s.shape)
    for _ in range(200):
        # Of two values, the expectile is their mean with the expectile's weights.
        value = expectile * d.max(1) + (1 - expectile) * d.min(1)
        d = np.where(following == g, discount, discount * value[following, g, b])
        d = np.where((s == g) & (a == b), 1, d)
    return torch.from_numpy(np.log(d) / np.log(discount))


def test_learning_converges_to_the_expectile_of_the_actions() -> None:
    model = Table(QModelSpec(1, ring.ACTIONS, 0.8), ring.STATES)
    goals = GoalSettings(current=0, future=0, random=1)  # independent of the action
    learner = learn(0.7, model, ring.every_transition(), goals, lr=0.1)
    learned, expected = all_distances(learner.model, ring.STATES), expectile_fixed_point(0.7, 0.8)
    assert (expected - ring.exact_distances()).max() > 1
    assert (learned - expected).abs().max() < 0.25
    assert (learned - expected).abs().mean() < 0.08


@pytest.mark.parametrize("goal_kind", ["state-action", "state"])
def test_a_high_expectile_comes_close_to_the_exact_distances(goal_kind: Literal["state", "state-action"]) -> None:
    dataset, truth = every_transition("corridor"), ground_truth(load_layout("corridor"))
    states, actions = truth.transitions.shape
    model = Table(QModelSpec(1, actions, 0.8), states, goal_kind)
    learn(0.98, model, dataset, GoalSettings(current=0.1, future=0.1, random=0.8), lr=0.05, min_steps=800)
    exact = truth.distances[truth.transitions].transpose(0, 2, 1)
    error = abs(all_steps_to_goal(model, ids(states).double()) - exact)[~np.eye(states, dtype=bool)]
    assert error.mean() < 0.5
    assert error.max() < 1
    assert score_planning(model, ids(states).double(), dataset, seed=0)["success_rate"] == 1


def test_where_one_action_is_seen_its_value_is_that_of_the_state() -> None:
    model = Table(QModelSpec(1, ring.ACTIONS, 0.8), ring.STATES)
    learner = learn(0.9, model, ring.wander(50, moves=1), GoalSettings(current=0.2, future=0.4, random=0.4), lr=0.1)
    before_any, move = 0, 1
    value = learner.value.logits[:, before_any, :, move].sigmoid()  # type: ignore[index]
    q = model.logits[:, move, :, move].sigmoid()
    torch.testing.assert_close(value, q, rtol=0, atol=0.01)
    torch.testing.assert_close(q, 0.8 ** ring.exact_distances()[:, move, :, move], rtol=0, atol=0.03)
