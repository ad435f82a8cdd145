import math

import numpy as np
import pytest
import torch

from qrl import QModelSpec
from qrl.agents.learners.gcbc import GcbcLearner
from qrl.agents.learners.settings import GcbcSettings
from qrl.agents.planning.planner import all_steps_to_goal
from qrl.envs.dataset import Dataset
from tests.agents.learners import naive_objectives
from tests.agents.learners.small_learners import SHORT, check_step, make_learner, train_table
from tests.agents.learners.tables import Table, ids


def one_step_episodes(*transitions: tuple[int, int, int]) -> Dataset:
    """Of (state, action, next state)."""
    rows = np.array([[before, after] for before, _, after in transitions], float)
    actions = [action for _, action, _ in transitions]
    return Dataset.from_arrays(rows.reshape(-1, 1), actions, [1] * len(transitions), num_actions=3)


@pytest.mark.parametrize("model", ["iqe-sum", "mrn-fixed", "unconstrained-state"])
def test_a_step_equals_the_naive_step(model: str) -> None:
    check_step(make_learner(GcbcLearner, GcbcSettings(**SHORT), model), naive_objectives.gcbc_loss, "model")


@pytest.mark.parametrize(("likes", "accuracy"), [(0, 0), (2, 1)])
def test_loss_by_hand(likes: int, accuracy: float) -> None:
    """All actions are 1 step from the goal but one, which is there: its probability is e / (e + 2)."""
    model = Table(QModelSpec(1, 3, 0.5), 2)  # D = 0.5: 1 step
    with torch.no_grad():
        model.logits[0, likes] = 50.0
    settings = GcbcSettings(batch_size=8)
    learner = GcbcLearner(model, ids(2), one_step_episodes((0, 2, 1)), settings, seed=0)
    loss = learner.loss()
    probability = (math.e if likes == 2 else 1) / (math.e + 2)
    assert loss.value.item() == pytest.approx(-math.log(probability), rel=1e-5)
    assert loss.reports["accuracy"].tolist() == [accuracy] * 8


def test_the_scores_become_the_frequencies_of_the_actions() -> None:
    """Towards the state after it: from 0 to 1 action 0 twice and action 1 once, from 0 to 2 action 2 alone."""
    dataset = one_step_episodes((0, 0, 1), (0, 1, 1), (0, 0, 1), (0, 2, 2))
    settings = GcbcSettings(batch_size=128, lr=0.1, min_steps=300, epochs=0.01)
    model = Table(QModelSpec(1, 3, 0.9), 3)
    train_table(GcbcLearner, settings, model, dataset)
    policy = torch.from_numpy(-all_steps_to_goal(model, ids(3).double())).softmax(-1)
    assert policy[0, 1].tolist() == pytest.approx([2 / 3, 1 / 3, 0], abs=0.05)
    assert policy[0, 2].tolist() == pytest.approx([0, 0, 1], abs=0.05)


def test_it_learns_scores_of_actions_only() -> None:
    learner = make_learner(GcbcLearner, GcbcSettings(**SHORT))
    assert learner.learns == "scores"
    assert list(learner.step()) == ["loss", "accuracy", "gradient_norm", "lr"]
