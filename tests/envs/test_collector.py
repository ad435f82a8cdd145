from pathlib import Path

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from qrl.envs.collector import BLOCK_EPISODES, CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.errors import LayoutError
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import Layout, builtin_layouts
from qrl.envs.registration import ENV_ID
from tests.layouts import TWO_CELLS, layouts


@pytest.mark.parametrize("layout", builtin_layouts())
def test_trajectories_replay_in_the_environment(layout: str) -> None:
    dataset = collect(CollectorSettings(layout=layout, trajectories=30, max_steps=60, seed=5))
    env = gymnasium.make(ENV_ID, layout=layout, max_steps=60)
    assert dataset.layout is not None
    cells = [tuple(cell) for cell in dataset.layout.cells.tolist()]
    for episode in range(dataset.num_episodes):
        first = int(dataset.offsets[episode])
        states = dataset.states[first + episode :]
        task = {"start": cells[states[0]], "goal": cells[dataset.goals[episode]]}
        observation, info = env.reset(options=task)
        for step in range(int(dataset.lengths[episode])):
            assert info["state"] == states[step]
            np.testing.assert_array_equal(observation["observation"], dataset.observations[states[step]])
            observation, _, terminated, truncated, info = env.step(int(dataset.actions[first + step]))
        assert info["state"] == dataset.last_states[episode]
        assert (terminated, truncated) == (dataset.terminated[episode], dataset.truncated[episode])


def test_the_fraction_of_random_actions_is_epsilon() -> None:
    dataset = collect(CollectorSettings(trajectories=3000, epsilon=0.6, seed=1))
    assert dataset.layout is not None
    before = dataset.states[dataset.sources]
    goals = np.repeat(dataset.goals, dataset.lengths)
    greedy = ground_truth(dataset.layout).greedy(before, goals)
    # With one greedy action, a non-greedy one has probability epsilon * 3/4; with two, epsilon * 2/4.
    for ties in (1, 2):
        tied = greedy.sum(1) == ties
        suboptimal = ~greedy[np.arange(len(greedy)), dataset.actions][tied]
        interval = binomtest(int(suboptimal.sum()), int(tied.sum())).proportion_ci(0.9999)
        assert interval.low < 0.6 * (1 - ties / 4) < interval.high
        assert interval.high - interval.low < 0.02


def test_ties_are_broken_uniformly() -> None:
    dataset = collect(CollectorSettings(trajectories=2000, epsilon=0, seed=2))
    assert dataset.layout is not None
    greedy = ground_truth(dataset.layout).greedy(
        dataset.states[dataset.sources], np.repeat(dataset.goals, dataset.lengths)
    )
    assert greedy[np.arange(len(greedy)), dataset.actions].all()
    up_or_right = (greedy == [True, True, False, False]).all(1)
    interval = binomtest(int((dataset.actions[up_or_right] == 0).sum()), int(up_or_right.sum())).proportion_ci(0.9999)
    assert interval.low < 0.5 < interval.high
    assert interval.high - interval.low < 0.1


def test_greedy_episodes_are_shortest() -> None:
    dataset = collect(CollectorSettings(trajectories=500, epsilon=0))
    assert dataset.layout is not None
    starts = dataset.states[dataset.starts]
    assert dataset.terminated.all()
    np.testing.assert_array_equal(dataset.lengths, ground_truth(dataset.layout).distances[starts, dataset.goals])


def as_bytes(dataset: Dataset, folder: Path) -> bytes:
    dataset.save(folder / "bytes.npz")
    return (folder / "bytes.npz").read_bytes()


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    settings = CollectorSettings(layout="traps", trajectories=50, seed=3)
    assert as_bytes(collect(settings), tmp_path) == as_bytes(collect(settings), tmp_path)
    other = collect(settings.model_copy(update={"seed": 4}))
    assert not np.array_equal(collect(settings).actions[:100], other.actions[:100])


@pytest.mark.parametrize("count", [1, 7, BLOCK_EPISODES - 1, BLOCK_EPISODES, BLOCK_EPISODES + 1, 2 * BLOCK_EPISODES])
def test_fewer_trajectories_are_a_prefix_of_more(count: int, tmp_path: Path) -> None:
    settings = CollectorSettings(layout="corridor", trajectories=2 * BLOCK_EPISODES + 5, seed=7)
    fewer = settings.model_copy(update={"trajectories": count})
    assert as_bytes(collect(settings).first(count), tmp_path) == as_bytes(collect(fewer), tmp_path)


def test_blocks_differ() -> None:
    dataset = collect(CollectorSettings(layout="corridor", trajectories=2 * BLOCK_EPISODES, max_steps=20))
    assert not np.array_equal(dataset.lengths[:BLOCK_EPISODES], dataset.lengths[BLOCK_EPISODES:])


def test_golden_data() -> None:
    """The data of a seed must not change silently: published datasets are identified by their settings."""
    dataset = collect(CollectorSettings(trajectories=2, seed=0))
    assert dataset.num_transitions == 92
    assert dataset.goals.tolist() == [82, 153]
    assert dataset.actions[:12].tolist() == [3, 2, 0, 0, 0, 1, 1, 3, 0, 3, 0, 0]


@hypothesis_settings(max_examples=30)
@given(layouts(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 12))
def test_any_layout_yields_valid_data(layout: Layout, epsilon: float, max_steps: int) -> None:
    settings = CollectorSettings(layout=layout.text, trajectories=20, epsilon=epsilon, max_steps=max_steps)
    distances = ground_truth(layout).distances[np.ix_(layout.starts, layout.goals)]
    if np.isinf(distances).all(1).any():
        with pytest.raises(LayoutError, match="no goal can be reached"):
            collect(settings)
        return
    dataset = collect(settings)  # validates that every transition is possible
    assert dataset.num_episodes == 20
    starts = dataset.states[dataset.starts]
    assert np.isin(starts, layout.starts).all()
    assert np.isin(dataset.goals, layout.goals).all()
    np.testing.assert_array_equal(dataset.terminated, dataset.last_states == dataset.goals)
    np.testing.assert_array_equal(dataset.truncated, ~dataset.terminated)
    assert (dataset.lengths[dataset.truncated] == max_steps).all()
    # No episode continues after its goal.
    goals = np.repeat(dataset.goals, dataset.lengths)
    assert (dataset.states[dataset.sources] != goals).all()


def test_one_step_episodes() -> None:
    dataset = collect(CollectorSettings(layout=TWO_CELLS, trajectories=5, epsilon=0))
    assert dataset.lengths.tolist() == [1] * 5
    assert dataset.actions.tolist() == [1] * 5
