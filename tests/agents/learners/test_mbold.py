import math
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from qrl import QModelSpec, make_q_model
from qrl.agents.evaluation.training_scores import score_planning
from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.mbold import MboldLearner, PairTriplets, least_discounted, mbold_loss, mbold_targets, td_loss
from qrl.agents.learners.settings import GoalSettings, MboldSettings
from qrl.agents.planning.planner import all_steps_to_goal
from qrl.common.config_files import merge
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from tests.agents.learners import naive_objectives
from tests.agents.learners.small_learners import SHORT, check_step, make_learner, traps
from tests.agents.learners.tables import Table, ids
from tests.agents.worlds import PLAIN, corridor, every_transition

SPEC = QModelSpec(observation_dim=1, num_actions=2, discount=0.9)


def batch(*columns: list[int]) -> Batch:
    unknown = torch.full((len(columns[0]),), torch.inf)  # steps along the trajectory
    return Batch(*[*map(torch.tensor, columns), unknown])


def test_targets_by_hand() -> None:
    model = Table(SPEC, 3)
    with torch.no_grad():
        model.logits[1, 1, 2, 0] = 3.0  # the best of state 1's actions towards (2, 0)
    # The same pair; arrives; arrives by staying, with another goal action; bootstraps.
    transitions = batch([0, 0, 0, 0], [1, 1, 0, 0], [1, 2, 0, 1], [0, 2, 0, 2], [1, 0, 1, 0])
    best = torch.tensor(3.0).sigmoid().item()
    assert mbold_targets(model, ids(3), transitions).tolist() == pytest.approx([1, 0.9, 0.9, 0.9 * best])


def test_targets_for_state_goals_by_hand() -> None:
    model = Table(SPEC, 3, "state")
    with torch.no_grad():
        model.logits[1, 1, 2] = 3.0
    transitions = batch([0, 0, 0], [1, 1, 0], [2, 1, 0], [2, 2, 2], [0, 0, 1])
    best = torch.tensor(3.0).sigmoid().item()
    assert mbold_targets(model, ids(3), transitions).tolist() == pytest.approx([1, 0.9 * best, 0.45])


def test_bounded_targets_by_hand() -> None:
    model = Table(SPEC, 3)  # D = 0.5 everywhere, so that a bootstrapped target is 0.45
    # The same pair; arrives; near; far; unknown.
    transitions = batch([0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 2, 1, 1, 1], [0, 2, 2, 2, 2], [1, 0, 0, 0, 0])
    steps = torch.tensor([0, 5, 3, 9, torch.inf])
    y = mbold_targets(model, ids(3), transitions, lambda _: steps)
    assert y.tolist() == pytest.approx([1, 0.9, 0.9**3, 0.45, 0.45])


def test_bounded_targets_for_state_goals_by_hand() -> None:
    """Of h steps to the goal, h - 1 remain after the action; 0 steps to s itself are no path back to it."""
    model = Table(SPEC, 3, "state")
    transitions = batch([0, 0, 0, 0], [1, 1, 0, 0], [1, 2, 1, 1], [0, 2, 2, 2], [1, 0, 0, 0])
    steps = torch.tensor([0.0, 1, 3, 20])
    y = mbold_targets(model, ids(3), transitions, lambda _: steps)
    assert y.tolist() == pytest.approx([0.45, 1, 0.9**2, 0.45])
    assert least_discounted(steps, model).tolist() == pytest.approx([0, 1, 0.9**2, 0.9**19])


SYMMETRIC = {"loss": "huber", "huber_delta": 1, "expectile": 0.5}


def huber(predicted: list[float], y: list[float], **values: float) -> list[float]:
    """The loss and its derivatives in the predicted distances; both arguments are distances. Symmetric by default."""
    d = torch.tensor(predicted, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor(y, dtype=torch.float64)
    loss = td_loss(0.9**d, 0.9**targets, 0.9, MboldSettings.from_values({**SYMMETRIC, **values}, "test"))
    loss.backward()
    assert d.grad is not None
    return [loss.item(), *d.grad.tolist()]


def test_huber_loss_by_hand() -> None:
    assert huber([5], [4.5]) == pytest.approx([0.125, 0.5])
    assert huber([5], [8]) == pytest.approx([2.5, -1])
    assert huber([5, 5], [4.5, 8]) == pytest.approx([2.625 / 2, 0.25, -0.5])


def test_huber_loss_is_quadratic_up_to_its_delta() -> None:
    assert huber([5], [8], huber_delta=4) == pytest.approx([4.5, -3])
    assert huber([5], [11], huber_delta=4) == pytest.approx([4 * (6 - 2), -4])


def test_too_short_distances_weigh_more_by_hand() -> None:
    """0.75 and 0.25 instead of 0.5 each, so 1.5 and 0.5 times the symmetric loss."""
    assert huber([5], [8], expectile=0.75) == pytest.approx([1.5 * 2.5, -1.5])
    assert huber([8], [5], expectile=0.75) == pytest.approx([0.5 * 2.5, 0.5])
    assert huber([5, 8], [8, 5], expectile=0.75) == pytest.approx([2.5, -0.75, 0.25])


@given(st.floats(0, 50), st.floats(0, 50), st.floats(0.05, 0.95), st.floats(0.1, 10))
def test_the_two_weights_of_an_error_add_up_to_the_symmetric_loss(d: float, y: float, tau: float, delta: float) -> None:
    values = {"max_distance": 60, "huber_delta": delta}
    sides = [huber([d], [y], expectile=weight, **values)[0] for weight in (tau, 1 - tau)]
    assert sum(sides) == pytest.approx(2 * huber([d], [y], **values)[0], rel=1e-6, abs=1e-9)


def test_beyond_the_maximum_the_huber_loss_sees_no_difference() -> None:
    assert huber([15], [math.inf], max_distance=10) == [0, 0]  # unreachable
    assert huber([8], [math.inf], max_distance=10) == pytest.approx([1.5, -1])
    assert huber([15], [4], max_distance=10) == pytest.approx([5.5, 0])


def test_a_maximum_beyond_the_range_of_floats_is_finite() -> None:
    settings = MboldSettings(loss="huber", max_distance=1e5)
    loss = td_loss(torch.tensor([0.5, 0.0]), torch.tensor([0.0, 0.0]), 0.9, settings)
    assert 0 < loss.item() < 1e4


OPTIONS: list[dict[str, Any]] = [
    {"loss": "huber"},
    {"loss": "huber", "expectile": 0.9, "huber_delta": 0.5},
    {"loss": "huber", "max_distance": 1, "discount": 0.5},  # about where the untrained models are
    {"bound": "trajectory"},
    {"bound": "graph"},
    {"bound": "graph", "loss": "huber", "goals": {"current": 0.1, "future": 0.4, "random": 0.5, "balanced": 0.5}},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("model", ["iqe-sum", "mrn-fixed", "unconstrained-state-disc-sigmoid"])
def test_a_step_with_options_equals_the_naive_step(options: dict[str, Any], model: str) -> None:
    settings = MboldSettings.from_values({**SHORT, **PLAIN, "batch_size": 32, **options}, "test")
    learner = make_learner(MboldLearner, settings, model)
    check_step(learner, lambda learner: naive_objectives.mbold_loss(learner, traps()), "model")


def plain(**values: float) -> MboldSettings:
    return MboldSettings.from_values({**PLAIN, **values}, "test")


def test_targets_are_clipped() -> None:
    class Wild(Table):
        def discounted(self, *arguments: Tensor | None) -> Tensor:
            return 100 * super().discounted(*arguments) - 50 * (arguments[0][..., 0] == 0).float()[..., None]  # type: ignore

    transitions = batch([0, 0], [0, 0], [1, 0], [2, 2], [0, 0])
    assert mbold_targets(Wild(SPEC, 3), ids(3), transitions).tolist() == [1, 0]


def test_loss_by_hand() -> None:
    model = Table(SPEC, 3)
    transitions = batch([0, 1], [1, 0], [1, 2], [2, 2], [0, 1])
    y = torch.tensor([0.9, 0.1])
    loss = mbold_loss(model, y, ids(3), transitions, plain(), None)
    assert loss.value.item() == pytest.approx((0.4**2 + 0.4**2) / 2)
    assert loss.reports.keys() == {"loss_td", "predicted_discount", "predicted_distance", "target_discount"}
    assert loss.reports["predicted_discount"].tolist() == [0.5, 0.5]
    assert loss.reports["target_discount"] is y
    with torch.no_grad():
        model.logits[0, 0, 2, 0] = logit(0.9)  # the action not taken
    loss = mbold_loss(model, y, ids(3), transitions, plain(conservative=2.0), None)
    first = math.log((math.exp(0.9) + math.exp(0.5)) / 2) - 0.5  # the other transition has two equal actions
    assert loss.reports["loss_conservative"].item() == pytest.approx(first / 2)
    assert loss.value.item() == pytest.approx(0.16 + first)


def logit(probability: float) -> float:
    return math.log(probability / (1 - probability))


@pytest.mark.parametrize(("goal_kind", "expected"), [("state-action", 0.0961), ("state", (0.9 * 0.9 * 0.9 - 0.5) ** 2)])
def test_triangle_term_of_the_loss_by_hand(goal_kind: Literal["state", "state-action"], expected: float) -> None:
    model = Table(SPEC, 3, goal_kind)
    column = 0 if goal_kind == "state" else 1
    with torch.no_grad():
        model.logits[0, 1, 1, 0] = logit(0.9)  # x = (0, 1) to y = (1, 0)
        model.logits[1, 0, 2, column] = logit(0.9)  # y to z = (2, 1)
        model.logits[0, 1, 2, column] = logit(0.5)
    triplets = PairTriplets(torch.tensor([[0], [1], [2]]), torch.tensor([[1], [0], [1]]))
    transitions = batch([0, 1], [1, 0], [1, 2], [0, 0], [0, 1])
    loss = mbold_loss(model, torch.tensor([0.5, 0.5]), ids(3), transitions, plain(triangle=3.0), triplets)
    assert loss.reports["loss_triangle"].item() == pytest.approx(expected, abs=1e-6)
    assert loss.value.item() == pytest.approx(loss.reports["loss_td"].item() + 3 * expected, abs=1e-6)
    assert len(loss.reports["predicted_discount"]) == 2  # without the triplets


def test_a_quasimetric_has_no_triangle_violation() -> None:
    dataset = corridor()
    torch.manual_seed(0)
    model = make_q_model("iqe-maxmean", QModelSpec(18, 4, 0.95), hidden_sizes=(8,), latent_size=16)
    sampler = GoalSampler(dataset, GoalSettings(), 0)
    states, actions = sampler.sample_pairs(300)
    triplets = PairTriplets(states.view(3, -1), actions.view(3, -1))
    settings = plain(triangle=1.0)
    observations = torch.tensor(dataset.observations)
    loss = mbold_loss(model, torch.zeros(8), observations, sampler.sample(8), settings, triplets)
    assert loss.reports["loss_triangle"].item() < 1e-12


def test_weights_stay_within_their_constraints() -> None:
    dataset = corridor()
    torch.manual_seed(0)
    model = make_q_model("wide-norm", QModelSpec(18, 4, 0.95), hidden_sizes=(16,), latent_size=16)
    learner = MboldLearner(model, torch.tensor(dataset.observations), dataset, plain(batch_size=64, lr=0.1), seed=0)
    for _ in range(5):
        learner.step(log=False)
    for module in (learner.model, learner.target):
        assert (module.head.weights.weight >= 0).all()  # type: ignore[operator, union-attr]


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "huber", "bound": "graph"}, {"bound": "graph", "goals": {"balanced": 0.5}}],
    ids=["plain", "huber-bound", "bound-balanced"],
)
@pytest.mark.parametrize("goal_kind", ["state-action", "state"])
def test_tabular_learning_converges_to_the_exact_distances(
    goal_kind: Literal["state", "state-action"], options: dict[str, Any]
) -> None:
    dataset = every_transition("corridor")
    truth = ground_truth(load_layout("corridor"))
    states, actions = truth.transitions.shape
    model = Table(QModelSpec(1, actions, 0.8), states, goal_kind).double()
    values = {"batch_size": 512, "lr": 0.2, "polyak": 0.3, "discount": 0.8, "epochs": 1, "min_steps": 1500}
    goals = {"current": 0.1, "future": 0.1, "random": 0.8}
    settings = MboldSettings.from_values(merge(merge({**values, "goals": goals}, PLAIN), options), "test")
    learner = MboldLearner(model, ids(states).double(), dataset, settings, seed=0)
    for _ in range(learner.num_steps):
        learner.step(log=False)
    learned = all_steps_to_goal(model, ids(states).double())
    exact = truth.distances[truth.transitions].transpose(0, 2, 1)
    other = ~np.eye(states, dtype=bool)
    assert abs(learned - exact)[other].max() < 0.05
    assert score_planning(model, ids(states).double(), dataset, seed=0)["success_rate"] == 1
