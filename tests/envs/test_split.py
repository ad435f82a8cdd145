"""Held-out trajectories."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.split import held_out_episodes, select, split
from tests.agents.worlds import corridor, without_layout


def hand_made() -> Dataset:
    """Three episodes of 2, 1 and 3 actions; the second has a goal that is visited nowhere."""
    rows = [[0], [1], [2], [5], [6], [2], [3], [4], [5]]
    goals = [[2], [9], [5]]
    return Dataset.from_arrays(
        rows, [0, 1, 1, 0, 1, 0], [2, 1, 3], num_actions=2, terminated=[True, False, False], goals=goals
    )


def test_some_episodes_by_hand() -> None:
    chosen = select(hand_made(), np.array([2, 1]))
    assert chosen.observations.ravel().tolist() == [2, 3, 4, 5, 6, 9]
    assert chosen.observations[chosen.states].ravel().tolist() == [2, 3, 4, 5, 5, 6]
    assert chosen.actions.tolist() == [0, 1, 0, 1]
    assert chosen.offsets.tolist() == [0, 3, 4]
    assert chosen.observations[chosen.goals].ravel().tolist() == [5, 9]
    assert chosen.truncated.tolist() == [True, True]
    assert not chosen.terminated.any()


def test_a_part_is_what_its_rows_would_make() -> None:
    """As if the file had never had the other episodes; so a run on a part is a run on a file of its own."""
    dataset = without_layout(corridor(12))
    training, held_out = split(dataset, 0.25)
    assert (training.num_episodes, held_out.num_episodes) == (9, 3)
    for part in (training, held_out):
        again = without_layout(part)
        for name, array in part.arrays.items():
            np.testing.assert_array_equal(again.arrays[name], array, err_msg=name)
            assert again.arrays[name].dtype == array.dtype


def test_episodes_without_goals_stay_so() -> None:
    assert (select(without_layout(corridor(4)), np.array([1, 3])).goals == -1).all()


def test_the_table_of_a_world_stays_whole() -> None:
    dataset = corridor(20)
    for part in split(dataset, 0.5):
        assert part.world is not None
        np.testing.assert_array_equal(part.observations, dataset.observations)


def test_single_visits_belong_to_their_episodes() -> None:
    noisy = collect(
        CollectorSettings.from_values({"world": {"name": "noisy", "layout": "corridor"}, "trajectories": 9}, "test")
    )
    training, held_out = split(noisy, 0.4)
    assert len(training.observations) + len(held_out.observations) <= len(noisy.observations)
    assert len(held_out.observations) < len(noisy.observations) / 2


@given(st.integers(2, 300), st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_which_episodes(episodes: int, one: float, other: float) -> None:
    small, large = (held_out_episodes(episodes, fraction) for fraction in sorted((one, other)))
    assert set(small) <= set(large)  # nested
    assert (np.diff(large) > 0).all()
    assert 1 <= len(large) < episodes
    assert abs(len(large) - max(one, other) * episodes) <= 1
    np.testing.assert_array_equal(large, held_out_episodes(episodes, max(one, other)))
    assert set(large) <= set(range(episodes))


def test_every_episode_may_be_held_out() -> None:
    """Not the first ones: data is often sorted."""
    chosen = held_out_episodes(1000, 0.1)
    assert len(chosen) == 100
    assert 400 < chosen.mean() < 600
    assert chosen.max() - chosen.min() > 900


def test_a_single_trajectory_is_refused() -> None:
    with pytest.raises(DatasetError, match="validation: 1 trajectory cannot be split; set validation=0"):
        split(corridor(1), 0.1)


@given(st.lists(st.integers(1, 6), min_size=2, max_size=12), st.floats(0.01, 0.5))
def test_nothing_is_lost(lengths: list[int], fraction: float) -> None:
    rng = np.random.default_rng(len(lengths))
    rows = rng.integers(5, size=(sum(lengths) + len(lengths), 1))
    dataset = Dataset.from_arrays(rows, rng.integers(3, size=sum(lengths)), lengths, num_actions=3)
    parts = split(dataset, fraction)
    held_out = set(held_out_episodes(len(lengths), fraction).tolist())
    position = {False: 0, True: 0}
    for episode in range(len(lengths)):
        part = parts[episode in held_out]
        index = position[episode in held_out]
        position[episode in held_out] += 1
        for data, number in ((dataset, episode), (part, index)):
            assert data.lengths[number] == lengths[episode]
        own, original = (
            data.observations[data.states[data.starts[number] : data.ends[number] + 1]]
            for data, number in ((part, index), (dataset, episode))
        )
        np.testing.assert_array_equal(own, original)
        own_actions, actions = (
            data.actions[data.offsets[number] : data.offsets[number + 1]]
            for data, number in ((part, index), (dataset, episode))
        )
        np.testing.assert_array_equal(own_actions, actions)
