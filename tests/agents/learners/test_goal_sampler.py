from typing import Any

import numpy as np
import pytest
import torch

from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.settings import GoalSettings
from qrl.envs.dataset import Dataset

# Two trajectories through distinct states: 0 1 2 3 4 with actions 0 1 2 0, and 5 6 with action 1.
LINE = Dataset.from_arrays(np.arange(7.0)[:, None], [0, 1, 2, 0, 1], [4, 1], num_actions=3)
TAKEN = {0: 0, 1: 1, 2: 2, 3: 0, 5: 1}


def sample(size: int = 20_000, **probabilities: Any) -> Batch:
    settings = GoalSettings(**{"current": 0, "future": 0, "random": 0, **probabilities})
    return GoalSampler(LINE, settings, seed=0).sample(size)


def frequencies(values: torch.Tensor, count: int) -> list[float]:
    return (torch.bincount(values, minlength=count) / len(values)).tolist()


def test_transitions_are_uniform_and_real() -> None:
    batch = sample(random=1)
    assert torch.equal(batch.next_states, batch.states + 1)
    assert batch.actions.tolist() == [TAKEN[state] for state in batch.states.tolist()]
    assert frequencies(batch.states, 7) == pytest.approx([0.2, 0.2, 0.2, 0.2, 0, 0.2, 0], abs=0.02)


def test_current_goals_are_the_pair_itself() -> None:
    batch = sample(current=1)
    assert torch.equal(batch.goals, batch.states)
    assert torch.equal(batch.goal_actions, batch.actions)


def test_uniform_future_goals() -> None:
    batch = sample(future=1)
    from_first = batch.goals[batch.states == 0]
    assert frequencies(from_first, 5) == pytest.approx([0, 0.25, 0.25, 0.25, 0.25], abs=0.03)
    assert (batch.goals[batch.states == 5] == 6).all()
    inside = batch.goals < 4
    assert batch.goal_actions[inside].tolist() == [TAKEN[goal] for goal in batch.goals[inside].tolist()]
    # No action is taken in the last state of a trajectory: a random one.
    assert frequencies(batch.goal_actions[batch.goals == 4], 3) == pytest.approx([1 / 3] * 3, abs=0.03)


def test_geometric_future_goals() -> None:
    batch = sample(future=1, offset="geometric", geometric_discount=0.5)
    from_first = batch.goals[batch.states == 0]
    assert frequencies(from_first, 5) == pytest.approx([0, 0.5, 0.25, 0.125, 0.125], abs=0.03)


def test_random_goals_are_uniform_over_all_states_of_the_data() -> None:
    batch = sample(random=1)
    assert frequencies(batch.goals, 7) == pytest.approx([1 / 7] * 7, abs=0.02)


def test_kinds_of_goals_are_mixed_by_their_probabilities() -> None:
    batch = sample(current=0.2, future=0.3, random=0.5)
    first = batch.states == 0
    same = (batch.goals == batch.states)[first].float().mean().item()
    assert same == pytest.approx(0.2 + 0.5 / 7, abs=0.03)
    other_trajectory = (batch.goals >= 5)[first].float().mean().item()
    assert other_trajectory == pytest.approx(0.5 * 2 / 7, abs=0.03)


def test_restoring_the_state_repeats_the_batches() -> None:
    sampler, other = (GoalSampler(LINE, GoalSettings(), seed) for seed in (1, 2))
    sampler.sample(100)
    other.load_state_dict(sampler.state_dict())
    first, second = sampler.sample(100), other.sample(100)
    assert all(torch.equal(a, b) for a, b in zip(vars(first).values(), vars(second).values(), strict=True))
    assert not torch.equal(first.states, sampler.sample(100).states)


def test_pairs() -> None:
    states, actions = GoalSampler(LINE, GoalSettings(), seed=0).sample_pairs(20_000)
    assert frequencies(states, 7) == pytest.approx([1 / 7] * 7, abs=0.02)
    assert all(
        TAKEN.get(state, action) == action for state, action in zip(states.tolist(), actions.tolist(), strict=True)
    )
