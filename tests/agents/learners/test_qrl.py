import math
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qrl import QModelSpec
from qrl.agents.learners.qrl import EachConstraint, MeanConstraint, QrlLearner
from qrl.agents.learners.settings import QrlSettings
from qrl.envs.dataset import Dataset
from tests.agents.learners import naive_objectives, ring
from tests.agents.learners.small_learners import SHORT, all_distances, check_step, make_learner, train_table
from tests.agents.learners.tables import ShortestPaths, Table, ids

Constraint = Literal["mean", "each"]
CONSTRAINTS: tuple[Constraint, ...] = ("mean", "each")

distances = st.lists(st.floats(0, 5), min_size=1, max_size=8)
epsilons = st.just(0.0) | st.floats(1e-6, 2)


def test_mean_constraint_by_hand() -> None:
    constraint = MeanConstraint(QrlSettings(multiplier=3, epsilon=0.5))
    local = torch.tensor([0.2, 2.0, 1.0, 3.0], requires_grad=True)
    primal, dual = constraint(local, torch.arange(4))
    violation = (1 + 4) / 4 - 0.25
    assert primal.item() == pytest.approx(3 * violation)
    assert dual.item() == pytest.approx(-3 * violation)
    (primal + dual).backward()
    assert local.grad is not None
    assert local.grad.tolist() == pytest.approx([0, 3 * 2 * 1 / 4, 0, 3 * 2 * 2 / 4])
    assert constraint.raw.grad is not None
    # The derivative of softplus is the sigmoid of raw = log(e^3 - 1).
    assert constraint.raw.grad.item() == pytest.approx(-violation * (1 - math.exp(-3)))


def test_each_constraint_by_hand() -> None:
    constraint = EachConstraint(QrlSettings(multiplier=3, epsilon=0.5), 4)
    local = torch.tensor([0.2, 2.0, 3.0], requires_grad=True)
    primal, dual = constraint(local, torch.tensor([0, 2, 2]))
    assert primal.item() == pytest.approx(((3 * 1 + 1) + (3 * 2 + 4)) / 3)
    (primal + dual).backward()
    assert local.grad is not None
    assert local.grad.tolist() == pytest.approx([0, (3 + 2) / 3, (3 + 4) / 3])
    constraint.optimizer(lr=0.1).step()
    # Ascent on d - 1 - epsilon, once for every time that a transition is drawn.
    assert constraint.multipliers.tolist() == pytest.approx([3 + 0.1 * -1.3, 3, 3 + 0.1 * (0.5 + 1.5), 3])


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("multiplier", [0.01, 1, 20, 2000])
def test_the_initial_multipliers_are_those_of_the_settings(constraint: Constraint, multiplier: float) -> None:
    learner = make_learner(QrlLearner, QrlSettings(constraint=constraint, multiplier=multiplier, **SHORT))
    torch.testing.assert_close(
        learner.constraint.multipliers, torch.full_like(learner.constraint.multipliers, multiplier)
    )


def ascend(constraint: MeanConstraint | EachConstraint, local: list[float]) -> torch.Tensor:
    """The multipliers after one step with these distances of the first transitions."""
    _, dual = constraint(torch.tensor(local), torch.arange(len(local)))
    dual.backward()
    constraint.optimizer(lr=0.1).step()
    constraint.project_()
    return constraint.multipliers


@given(distances, epsilons, st.floats(0.001, 10))
def test_the_one_multiplier_rises_only_if_the_mean_is_violated(
    local: list[float], epsilon: float, multiplier: float
) -> None:
    constraint = MeanConstraint(QrlSettings(epsilon=epsilon, multiplier=multiplier))
    before = constraint.multipliers.item()
    after = ascend(constraint, local).item()
    violation = np.mean([max(d - 1, 0) ** 2 for d in local]) - epsilon**2
    assert after >= 0
    if abs(violation) > 1e-5:
        assert (after > before) == (violation > 0)


@given(distances, epsilons, st.floats(0.001, 1))
def test_exactly_the_multipliers_of_violated_transitions_rise(
    local: list[float], epsilon: float, multiplier: float
) -> None:
    constraint = EachConstraint(QrlSettings(epsilon=epsilon, multiplier=multiplier), 10)
    before = constraint.multipliers.clone()
    after = ascend(constraint, local)
    assert (after >= 0).all()
    assert torch.equal(after[len(local) :], before[len(local) :])
    for d, rose in zip(local, (after > before).tolist(), strict=False):
        if abs(d - 1 - epsilon) > 1e-5:
            assert rose == (d > 1 + epsilon)


def constant_model(discount: float) -> Table:
    """Every distance, even of a pair to itself, is log(0.5) / log(discount)."""
    model = Table(QModelSpec(1, ring.ACTIONS, discount), ring.STATES)
    model.guaranteed_quasimetric = True
    return model


@pytest.mark.parametrize(("constraint", "term"), [("mean", 3 * (1 - 0.5**2)), ("each", 3 * 1 + 1)])
def test_loss_by_hand(constraint: Constraint, term: float) -> None:
    settings = QrlSettings(constraint=constraint, multiplier=3, epsilon=0.5, offset=8, softness=4, batch_size=32)
    learner = QrlLearner(constant_model(0.5**0.5), ids(ring.STATES), ring.every_transition(), settings, seed=0)
    loss = learner.loss()
    push = 4 * math.log(1 + math.exp((8 - 2) / 4))  # all distances are 2
    assert loss.value.item() == pytest.approx(push + term, rel=1e-5)
    reports = {name: value.mean().item() for name, value in loss.reports.items()}
    expected = {
        "loss_push": push,
        "violation": 1,
        "multiplier": 3,
        "transition_distance": 2,
        "random_distance": 2,
    }
    assert reports == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("model", ["iqe-sum", "mrn-fixed"])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_step_equals_the_naive_step(constraint: Constraint, model: str) -> None:
    # Small distances and an early offset, so that all terms have a part in the gradient.
    settings = QrlSettings(constraint=constraint, multiplier=2, offset=3, softness=1, epsilon=0.1, **SHORT)
    learner = make_learner(QrlLearner, settings, model)
    with torch.no_grad():
        for parameter in learner.model.parameters():
            parameter.mul_(3)
    before = learner.constraint.multipliers.clone()
    naive = check_step(learner, naive_objectives.qrl_loss, "model")
    assert naive.constraint.raw.grad is None
    assert not torch.equal(learner.constraint.multipliers, before)
    assert (learner.constraint.multipliers >= 0).all()


def test_a_pair_and_itself_are_no_transition() -> None:
    """A move against a wall leads from (s, a) to (s, b): its distance is 1 for every b but a."""
    stay = Dataset.from_arrays(np.zeros((2, 1)), [0], [1], num_actions=2)
    model = ShortestPaths(QModelSpec(1, 2, 0.9), 1)
    with torch.no_grad():
        model.raw.fill_(math.log(math.expm1(1.0)))  # all other distances are 1
    settings = QrlSettings(constraint="each", epsilon=0, batch_size=64)
    learner = QrlLearner(model, ids(1), stay, settings, seed=0)
    scalars = learner.step()
    assert scalars["transition_distance"] == pytest.approx(1)
    assert learner.constraint.multipliers.tolist() == pytest.approx([1, 1])  # of both actions after it


def train_ring(**values: Any) -> QrlLearner:
    common = {
        "batch_size": 64,
        "lr": 0.1,
        "epochs": 0.01,
        "min_steps": 300,
        "offset": 20,
        "softness": 2,
        "multiplier": 10,
    }
    settings = QrlSettings.from_values({**common, **values}, "test")
    model = ShortestPaths(QModelSpec(1, ring.ACTIONS, 0.9), ring.STATES)
    return train_table(QrlLearner, settings, model, ring.every_transition())


def test_a_multiplier_per_transition_converges_to_the_exact_distances() -> None:
    learner = train_ring(constraint="each", epsilon=0)
    assert (all_distances(learner.model, ring.STATES) - ring.exact_distances()).abs().max() < 0.02


def test_one_multiplier_holds_the_mean_violation() -> None:
    """The distances are then too long by as much as epsilon allows on each of their transitions."""
    learner = train_ring(constraint="mean", epsilon=0.1, multiplier_lr=0.1)
    learned, exact = all_distances(learner.model, ring.STATES), ring.exact_distances()
    assert learner.step()["violation"] == pytest.approx(0.1, abs=0.03)
    assert (learned > exact - 0.05).all()
    assert learned.sum() / exact.sum() == pytest.approx(1.1, abs=0.1)


def test_what_the_data_does_not_reach_is_pushed_to_the_offset() -> None:
    one_way = Dataset.from_arrays(np.array([[0.0], [1.0]]), [0], [1], num_actions=1)  # 0 -> 1, and no path back
    settings = QrlSettings.from_values(
        {"constraint": "each", "epsilon": 0, "offset": 5, "softness": 0.1, "batch_size": 32, "lr": 0.1}
        | {"min_steps": 300, "epochs": 0.01},
        "test",
    )
    learner = train_table(QrlLearner, settings, ShortestPaths(QModelSpec(1, 1, 0.9), 2), one_way)
    learned = all_distances(learner.model, 2)
    assert learned[0, 0, 1, 0].item() == pytest.approx(1, abs=0.05)
    assert learned[1, 0, 0, 0].item() > 4.8
