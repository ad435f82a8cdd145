import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qrl import QModelSpec
from qrl.agents.learners.settings import GoalSettings, TmdSettings
from qrl.agents.learners.tmd import TmdLearner, backup_loss
from tests.agents.learners import naive_objectives, ring
from tests.agents.learners.small_learners import SHORT, all_distances, check_step, make_learner, train_table
from tests.agents.learners.tables import Table

GAMMA = 0.9


def value_and_gradient(distance: float, following: float, linear_from: float = 3.0) -> tuple[float, float]:
    d = torch.tensor([distance], dtype=torch.float64, requires_grad=True)
    after = torch.tensor([following], dtype=torch.float64, requires_grad=True)
    loss = backup_loss(d, after, GAMMA, linear_from)
    loss.backward()
    assert d.grad is not None
    assert after.grad is None  # a fixed target
    return loss.item(), d.grad.item()


def test_backup_by_hand() -> None:
    assert value_and_gradient(5, 4) == pytest.approx((GAMMA * math.e - 5, GAMMA * math.e - 1))
    assert value_and_gradient(1, 4) == pytest.approx((GAMMA * math.exp(-3) - 1, GAMMA * math.exp(-3) - 1))
    assert value_and_gradient(9, 4) == pytest.approx((5, 1))
    assert value_and_gradient(6, 4, linear_from=1.5) == pytest.approx((2, 1))
    assert value_and_gradient(7, 4) == pytest.approx((GAMMA * math.exp(3) - 7, GAMMA * math.exp(3) - 1))  # at t itself


def test_backup_is_a_mean() -> None:
    loss = backup_loss(torch.tensor([5.0, 9.0]), torch.tensor([4.0, 4.0]), GAMMA, 3)
    assert loss.item() == pytest.approx((GAMMA * math.e - 5 + 5) / 2)


@given(st.floats(0, 500), st.floats(-5, 2.9))
def test_backup_draws_towards_one_step_more(following: float, delta: float) -> None:
    one_step = -math.log(GAMMA)
    _, gradient = value_and_gradient(following + delta, following)
    if abs(delta - one_step) > 1e-6:
        assert (gradient > 0) == (delta > one_step)
    assert value_and_gradient(following + one_step, following)[1] == pytest.approx(0, abs=1e-9)


@given(st.floats(-1e6, 1e6))
def test_backup_is_finite(delta: float) -> None:
    assert all(map(math.isfinite, value_and_gradient(2e6 + delta, 2e6)))


@pytest.mark.parametrize("model", ["iqe-sum", "mrn-fixed", "dot"])
@pytest.mark.parametrize("linear_from", [3, 0.01])
def test_a_step_equals_the_naive_step(model: str, linear_from: float) -> None:
    settings = TmdSettings(backup_weight=2, linear_from=linear_from, **SHORT)
    learner = make_learner(TmdLearner, settings, model)
    check_step(learner, naive_objectives.tmd_loss, "model", "potential")


def test_reports_are_in_steps() -> None:
    learner = make_learner(TmdLearner, TmdSettings(**SHORT))
    loss = learner.loss()
    assert tuple(loss.reports) == learner.reports
    expected = loss.reports["loss_contrast"] + 0.05 * loss.reports["loss_backup"]
    torch.testing.assert_close(loss.value, expected)


def test_a_heavy_backup_learns_the_shortest_way() -> None:
    goals = GoalSettings(current=0.05, future=0.95, random=0)
    settings = TmdSettings(
        discount=0.8, backup_weight=100, batch_size=64, lr=0.1, min_steps=400, epochs=0.01, goals=goals
    )
    model = Table(QModelSpec(1, ring.ACTIONS, 0.8), ring.STATES)
    learner = train_table(TmdLearner, settings, model, ring.wander(3000))
    exact = ring.exact_distances()
    error = (all_distances(learner.model, ring.STATES) - exact)[exact > 0]  # no backup starts at its goal
    assert error.abs().max() < 0.1
