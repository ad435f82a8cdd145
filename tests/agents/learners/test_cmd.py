import pytest
import torch

from qrl import QModelSpec
from qrl.agents.learners.cmd import CmdLearner
from qrl.agents.learners.settings import CmdSettings, GoalSettings
from tests.agents.learners import naive_objectives, ring
from tests.agents.learners.small_learners import SHORT, all_distances, check_step, make_learner, train_table
from tests.agents.learners.tables import ShortestPaths


@pytest.mark.parametrize("model", ["iqe-sum", "mrn-fixed"])
def test_a_step_equals_the_naive_step(model: str) -> None:
    learner = make_learner(CmdLearner, CmdSettings(**SHORT), model)
    check_step(learner, naive_objectives.cmd_loss, "model", "potential")


def test_reports() -> None:
    learner = make_learner(CmdLearner, CmdSettings(**SHORT))
    loss = learner.loss()
    assert tuple(loss.reports) == learner.reports
    assert loss.reports["loss_contrast"] is loss.value
    size = learner.settings.batch_size
    assert loss.reports["random_distance"].shape == (size, size)
    torch.testing.assert_close(loss.reports["future_distance"], loss.reports["random_distance"].diagonal())
    assert set(loss.reports["accuracy"].tolist()) <= {0, 1}


def test_default_goals_are_a_geometric_number_of_steps_away_from_0_on() -> None:
    goals = CmdSettings().goals
    assert goals.offset == "geometric"
    assert (goals.current, goals.future) == pytest.approx((1 - goals.geometric_discount, goals.geometric_discount))


def test_the_optimum_is_the_successor_distance_of_the_behaviour() -> None:
    gamma, moves = 0.7, 0.6
    goals = GoalSettings(current=1 - gamma, future=gamma, random=0, offset="geometric", geometric_discount=gamma)
    settings = CmdSettings(discount=gamma, batch_size=128, lr=0.1, min_steps=800, epochs=0.01, goals=goals)
    model = ShortestPaths(QModelSpec(1, ring.ACTIONS, gamma), ring.STATES)
    learner = train_table(CmdLearner, settings, model, ring.wander(20_000, moves))
    learned, expected = all_distances(learner.model, ring.STATES), ring.successor_distances(moves, gamma)
    assert (expected - ring.exact_distances()).abs().mean() > 1  # it is another distance
    assert (learned - expected).abs().mean() < 0.15
    assert (learned - expected).abs().max() < 0.6
