import math
from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from qrl import QModelSpec, make_q_model
from qrl.agents.evaluation.training_scores import score_planning
from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.mbold import MboldLearner, PairTriplets, mbold_loss, mbold_targets
from qrl.agents.learners.settings import GoalSettings, MboldSettings
from qrl.agents.planning.planner import all_steps_to_goal
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from tests.agents.learners.tables import Table, ids
from tests.agents.worlds import corridor, every_transition

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
    loss = mbold_loss(model, y, ids(3), transitions, MboldSettings(), None)
    assert loss.value.item() == pytest.approx((0.4**2 + 0.4**2) / 2)
    assert loss.reports.keys() == {"loss_td", "predicted_discount", "predicted_distance", "target_discount"}
    assert loss.reports["predicted_discount"].tolist() == [0.5, 0.5]
    assert loss.reports["target_discount"] is y
    loss = mbold_loss(model, y, ids(3), transitions, MboldSettings(conservative=2.0), None)
    assert loss.reports["loss_conservative"].item() == pytest.approx(math.log(2))  # logsumexp of (0.5, 0.5) minus 0.5
    assert loss.value.item() == pytest.approx(0.16 + 2 * math.log(2))


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
    loss = mbold_loss(model, torch.tensor([0.5, 0.5]), ids(3), transitions, MboldSettings(triangle=3.0), triplets)
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
    settings = MboldSettings(triangle=1.0)
    observations = torch.tensor(dataset.observations)
    loss = mbold_loss(model, torch.zeros(8), observations, sampler.sample(8), settings, triplets)
    assert loss.reports["loss_triangle"].item() < 1e-12


def test_weights_stay_within_their_constraints() -> None:
    dataset = corridor()
    torch.manual_seed(0)
    model = make_q_model("wide-norm", QModelSpec(18, 4, 0.95), hidden_sizes=(16,), latent_size=16)
    learner = MboldLearner(
        model, torch.tensor(dataset.observations), dataset, MboldSettings(batch_size=64, lr=0.1), seed=0
    )
    for _ in range(5):
        learner.step(log=False)
    for module in (learner.model, learner.target):
        assert (module.head.weights.weight >= 0).all()  # type: ignore[operator, union-attr]


@pytest.mark.parametrize("goal_kind", ["state-action", "state"])
def test_tabular_learning_converges_to_the_exact_distances(goal_kind: Literal["state", "state-action"]) -> None:
    dataset = every_transition("corridor")
    truth = ground_truth(load_layout("corridor"))
    states, actions = truth.transitions.shape
    model = Table(QModelSpec(1, actions, 0.8), states, goal_kind).double()
    goals = GoalSettings(current=0.1, future=0.1, random=0.8)
    settings = MboldSettings(batch_size=512, lr=0.2, polyak=0.3, discount=0.8, goals=goals, epochs=1, min_steps=1200)
    learner = MboldLearner(model, ids(states).double(), dataset, settings, seed=0)
    for _ in range(learner.num_steps):
        learner.step(log=False)
    learned = all_steps_to_goal(model, ids(states).double())
    exact = truth.distances[truth.transitions].transpose(0, 2, 1)
    other = ~np.eye(states, dtype=bool)
    assert abs(learned - exact)[other].max() < 0.05
    assert score_planning(model, ids(states).double(), dataset, seed=0)["success_rate"] == 1
