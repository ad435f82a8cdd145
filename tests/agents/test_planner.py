import numpy as np
import pytest
import torch

from agents.evaluation import score
from agents.observations import fit_scaling
from agents.planner import all_steps_to_goal, exhaustive_tasks, follow, policy_table
from envs.ground_truth import GroundTruth, ground_truth
from envs.layout import load_layout
from qrl import QModelSpec, make_q_model
from qrl.q_models import QModel


def oracle(truth: GroundTruth) -> np.ndarray:
    """(states, goals, actions): the true steps that remain after each action."""
    return truth.distances[truth.transitions].transpose(0, 2, 1)


@pytest.mark.parametrize("layout", ["six-rooms", "traps", "corridor"])
def test_the_true_distances_reach_every_goal_on_shortest_ways(layout: str) -> None:
    truth = ground_truth(load_layout(layout))
    starts, goals = exhaustive_tasks(truth)
    outcome = follow(policy_table(oracle(truth), seed=0), truth, starts, goals)
    assert outcome.success.all()
    np.testing.assert_array_equal(outcome.steps, truth.distances[starts, goals])


def test_tasks_are_all_starts_with_all_goals_they_can_reach() -> None:
    starts, goals = exhaustive_tasks(ground_truth(load_layout("six-rooms")))
    assert len(starts) == len({*zip(starts.tolist(), goals.tolist(), strict=True)}) == 9180


def test_a_policy_that_walks_into_a_wall_fails() -> None:
    truth = ground_truth(load_layout("corridor"))
    up = np.zeros((len(truth.transitions), len(truth.transitions)), int)
    outcome = follow(up, truth, truth.layout.starts, truth.layout.goals, max_steps=7)
    assert (outcome.success.tolist(), outcome.steps.tolist()) == ([False], [7])


def test_the_cap_is_kept() -> None:
    truth = ground_truth(load_layout("corridor"))
    policy = policy_table(oracle(truth), seed=0)
    for cap, success in ((2, False), (3, True)):
        assert follow(policy, truth, truth.layout.starts, truth.layout.goals, cap).success.tolist() == [success]


def test_ties_are_broken_by_the_seed_and_evenly() -> None:
    steps = np.zeros((100, 100, 4), np.float32)
    steps[..., 3] = 1
    policy = policy_table(steps, seed=0)
    assert np.bincount(policy.ravel(), minlength=4) / policy.size == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=0.02)
    np.testing.assert_array_equal(policy, policy_table(steps, seed=0))
    assert (policy != policy_table(steps, seed=1)).mean() > 0.5


def test_all_steps_equal_asking_pair_by_pair() -> None:
    truth = ground_truth(load_layout("traps"))
    model = make_q_model("mrn", QModelSpec(18, 4, 0.95), hidden_sizes=(8,), latent_size=8).train()
    observations = torch.tensor(truth.layout.observations)
    table = all_steps_to_goal(model, observations)
    assert model.training  # as it was
    model.eval()
    rows = model.encode(observations)
    for state, goal in [(0, 5), (106, 3), (50, 50)]:
        expected = model.steps_to_goal(rows[state], rows[goal]).detach().numpy()
        np.testing.assert_allclose(table[state, goal], expected, rtol=1e-4, atol=1e-5)


def test_score_by_hand() -> None:
    truth = ground_truth(load_layout("traps"))

    class Off(QModel):
        """The true steps, wrong by a constant."""

        def encode(self, observations: torch.Tensor, counts: torch.Tensor | None = None) -> torch.Tensor:
            return torch.arange(len(observations))

        def steps_to_goal(self, state: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
            return torch.tensor(oracle(truth))[state, goal] - 0.5

    found = score(Off(QModelSpec(18, 4, 0.95)), torch.tensor(truth.layout.observations), truth, seed=0)
    assert found == {"success_rate": 1.0, "distance_error": -0.5, "distance_absolute_error": 0.5}


def test_scaling() -> None:
    rows = torch.tensor([[1.0, 5.0, 0.1], [3.0, 5.0, 0.1], [5.0, 5.0, 0.1]])
    scaled = fit_scaling(rows, standardize=True)(rows)
    assert scaled[:, 0].tolist() == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])
    assert (scaled[:, 1:] == 0).all()  # what never changes says nothing
    assert torch.equal(fit_scaling(rows, standardize=False)(rows), rows)
