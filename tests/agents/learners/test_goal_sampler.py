from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from qrl.agents.learners.goal_sampler import NEAR, Batch, GoalSampler
from qrl.agents.learners.registry import find_settings
from qrl.agents.learners.settings import GoalSettings
from qrl.common.errors import ConfigError
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from tests.agents.worlds import corridor

# Two trajectories through distinct states: 0 1 2 3 4 with actions 0 1 2 0, and 5 6 with action 1.
LINE = Dataset.from_arrays(np.arange(7.0)[:, None], [0, 1, 2, 0, 1], [4, 1], num_actions=3)
TAKEN = {0: 0, 1: 1, 2: 2, 3: 0, 5: 1}


def sample(size: int = 20_000, **probabilities: Any) -> Batch:
    settings = GoalSettings(**{"current": 0, "future": 0, "random": 0, **probabilities})
    return GoalSampler(LINE, settings, seed=0).sample(size)


def frequencies(values: torch.Tensor, count: int) -> list[float]:
    return (torch.bincount(values, minlength=count) / len(values)).tolist()


def rows_of(*columns: torch.Tensor) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


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


@pytest.mark.parametrize("balanced", [0, 1])
def test_connected_random_goals_come_from_the_states_that_the_data_connects(balanced: float) -> None:
    # The line 0 1 2 twice, each step of it with the same action, and 5 6 apart.
    rows = np.array([[0.0], [1], [2], [0], [1], [2], [5], [6]])
    dataset = Dataset.from_arrays(rows, [0, 1, 0, 1, 2], [2, 2, 1], num_actions=3)
    settings = GoalSettings(current=0, future=0, random=1, balanced=balanced, connected=True)
    batch = GoalSampler(dataset, settings, seed=0).sample(20_000)
    first = batch.states < 3
    assert ((batch.goals < 3) == first).all()
    # All steps of the data, or its distinct pairs, which have the states 0 and 1; a few balanced goals are near ones.
    expected = [0.5, 0.5, 0] if balanced else [1 / 3] * 3
    drawn = batch.goals[first & ((batch.hindsight != 1) if balanced else True)]
    assert frequencies(drawn, 3) == pytest.approx(expected, abs=0.02)


def test_connected_goals_are_drawn_against_the_direction_of_transitions_too() -> None:
    # 0 -> 1 and 2 -> 1: no path leads from 0 to 2, but 1 connects them; 3 -> 4 is apart.
    rows = np.array([[0.0], [1], [2], [1], [3], [4]])
    dataset = Dataset.from_arrays(rows, [0, 0, 0], [1, 1, 1], num_actions=1)
    settings = GoalSettings(current=0, future=0, random=1, connected=True)
    batch = GoalSampler(dataset, settings, seed=0).sample(1000)
    goals = {state: set(batch.goals[batch.states == state].tolist()) for state in (0, 2, 3)}
    assert goals == {0: {0, 1, 2}, 2: {0, 1, 2}, 3: {3, 4}}


def test_kinds_of_goals_are_mixed_by_their_probabilities() -> None:
    batch = sample(current=0.2, future=0.3, random=0.5)
    first = batch.states == 0
    same = (batch.goals == batch.states)[first].float().mean().item()
    assert same == pytest.approx(0.2 + 0.5 / 7, abs=0.03)
    other_trajectory = (batch.goals >= 5)[first].float().mean().item()
    assert other_trajectory == pytest.approx(0.5 * 2 / 7, abs=0.03)


@pytest.mark.parametrize("kind", ["current", "future", "random"])
def test_hindsight_steps(kind: str) -> None:
    """States of the line are steps: 0 to 4 and 5 to 6 are the trajectories."""
    batch = sample(2000, **{kind: 1})
    for state, goal, hindsight in rows_of(batch.states, batch.goals, batch.hindsight):
        later = goal >= state and (goal >= 5) == (state >= 5)
        assert hindsight == (goal - state if later else np.inf)
    if kind == "random":  # goals behind it, later on the same trajectory, and on the other one
        assert (batch.goals < batch.states).any()
        assert (batch.hindsight.isfinite() & (batch.hindsight > 0)).any()
        assert (batch.hindsight == 0).any()
    else:
        assert batch.hindsight.isfinite().all()
        assert (batch.hindsight > 0).all() == (kind == "future")


def test_hindsight_steps_of_repeated_states_are_ways_of_the_data() -> None:
    dataset = corridor(10)
    ways = set()
    for start, end in zip(dataset.starts, dataset.ends, strict=True):
        for i in range(start, end):
            for j in range(i, end + 1):
                ways.add((dataset.states[i], dataset.states[i + 1], dataset.states[j], j - i))
    batch = GoalSampler(dataset, GoalSettings(current=0.1, future=0.5, random=0.4), seed=0).sample(500)
    known = batch.hindsight.isfinite()
    drawn = rows_of(*(values[known] for values in (batch.states, batch.next_states, batch.goals, batch.hindsight)))
    assert known.sum() > 300
    assert set(drawn) <= ways


# 0 -> 1 forty times, 0 -> 2 twice and 1 -> 3 once, with three actions of which the last is never taken.
REPEATED = Dataset.from_arrays(
    np.array([[0.0], [1]] * 40 + [[0], [2]] * 2 + [[1], [3]]), [0] * 40 + [1] * 2 + [0], [1] * 43, num_actions=3
)
DISTINCT = [(0, 0, 1), (0, 1, 2), (1, 0, 3)]


def assert_uniform(rows: list[tuple[int, ...]], expected: Sequence[tuple[int, ...]]) -> None:
    """Over the expected rows, by a chi-square bound that chance hardly exceeds."""
    assert set(rows) == set(expected)
    mean = len(rows) / len(expected)
    chi_square = sum((rows.count(row) - mean) ** 2 / mean for row in expected)
    assert chi_square < len(expected) + 6 * len(expected) ** 0.5


def test_balanced_transitions_are_uniform_over_the_distinct_ones() -> None:
    settings = GoalSettings(current=0.1, future=0.5, random=0.4, balanced=1)
    batch = GoalSampler(REPEATED, settings, seed=0).sample(6000)
    assert_uniform(rows_of(batch.states, batch.actions, batch.next_states), DISTINCT)
    current, near, random = batch.hindsight == 0, batch.hindsight == 1, batch.hindsight.isinf()
    parts = [part.float().mean().item() for part in (current, near, random)]
    assert parts == pytest.approx([0.1, NEAR, 0.9 - NEAR], abs=0.015)
    assert torch.equal(batch.goals[current], batch.states[current])
    assert torch.equal(batch.goal_actions[current], batch.actions[current])
    assert torch.equal(batch.goals[near], batch.next_states[near])
    assert set(batch.goal_actions[near].tolist()) == {0, 1, 2}
    assert_uniform(rows_of(batch.goals[random], batch.goal_actions[random]), [(s, a) for s, a, _ in DISTINCT])


def test_the_balanced_share_comes_last_and_changes_no_other_draw() -> None:
    plain = GoalSampler(REPEATED, GoalSettings(), seed=3)
    half = GoalSampler(REPEATED, GoalSettings(balanced=0.5), seed=3)
    for size in (10, 31):
        first, second = plain.sample(size - round(size / 2)), half.sample(size)
        for name, values in vars(first).items():
            mixed = vars(second)[name]
            assert len(mixed) == size
            assert mixed.dtype == values.dtype
            assert torch.equal(mixed[: len(values)], values)
    assert torch.equal(plain.sample_pairs(20)[0], half.sample_pairs(20)[0])


def test_nothing_is_balanced_where_no_state_repeats() -> None:
    once = Dataset.from_arrays(np.arange(7.0)[:, None], [0, 1, 0, 1, 0], [3, 2], num_actions=2)
    plain, balanced = (GoalSampler(once, GoalSettings(balanced=share), seed=3) for share in (0, 0.5))
    for first, second in zip(vars(plain.sample(50)).values(), vars(balanced.sample(50)).values(), strict=True):
        assert torch.equal(first, second)


def test_little_data_of_a_large_world_is_balanced() -> None:
    two_trajectories = corridor(2)
    assert len(np.unique(two_trajectories.states)) < len(two_trajectories.states) < 100
    large = collect(CollectorSettings(layout="six-rooms", trajectories=1, max_steps=200, seed=1))
    assert len(np.unique(large.states)) < len(large.states) < len(large.observations)
    for dataset in (two_trajectories, large):
        assert GoalSampler(dataset, GoalSettings(balanced=0.5), seed=0).balanced == 0.5


@pytest.mark.parametrize("name", ["gcbc", "cmd", "tmd"])
def test_learners_from_the_future_refuse_other_goals(name: str) -> None:
    settings = find_settings(name)
    settings.from_values({"goals": {"offset": "uniform"}}, "test")
    with pytest.raises(ConfigError, match=rf"goals\.balanced: must be 0: {name} learns from goals of the same"):
        settings.from_values({"goals": {"balanced": 0.5}}, "test")
    with pytest.raises(ConfigError, match=r"goals\.random: must be 0"):
        settings.from_values({"goals": {"future": 0.5, "random": 0.5, "current": 0}}, "test")


def test_without_a_balanced_share_the_state_is_that_of_one_generator() -> None:
    state = GoalSampler(LINE, GoalSettings(), seed=5).state_dict()
    assert state == np.random.default_rng(5).bit_generator.state
    assert GoalSampler(REPEATED, GoalSettings(balanced=0.1), seed=5).state_dict().keys() - state.keys() == {"balanced"}


def test_constraints_are_distinct_transitions_with_any_actions() -> None:
    sampler = GoalSampler(REPEATED, GoalSettings(), seed=0)
    ids, states, actions, next_states, any_actions = sampler.sample_constraints(6000)
    every = [(i, *row, action) for i, row in enumerate(DISTINCT) for action in range(3)]
    assert_uniform(rows_of(ids, states, actions, next_states, any_actions), every)


def test_constraints_that_stay_lead_to_other_actions() -> None:
    stay = Dataset.from_arrays(np.zeros((2, 1)), [1], [1], num_actions=3)
    *_, next_actions = GoalSampler(stay, GoalSettings(), seed=0).sample_constraints(2000)
    assert_uniform(rows_of(next_actions), [(0,), (2,)])
    only_action = Dataset.from_arrays(np.zeros((2, 1)), [0], [1], num_actions=1)
    *_, next_actions = GoalSampler(only_action, GoalSettings(), seed=0).sample_constraints(10)
    assert not next_actions.any()


def test_any_pairs_are_uniform_over_visited_states_and_all_actions() -> None:
    assert_uniform(
        rows_of(*GoalSampler(REPEATED, GoalSettings(), seed=0).sample_any_pairs(6000)),
        [(state, action) for state in range(4) for action in range(3)],
    )
    visited = GoalSampler(corridor(1), GoalSettings(), seed=0).visited
    assert set(visited) == set(corridor(1).states)


@pytest.mark.parametrize("balanced", [0, 0.5])
def test_restoring_the_state_repeats_the_batches(balanced: float) -> None:
    sampler, other = (GoalSampler(REPEATED, GoalSettings(balanced=balanced), seed) for seed in (1, 2))
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
