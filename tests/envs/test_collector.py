from pathlib import Path

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from qrl.envs.collector import BLOCK, CollectorSettings, collect
from qrl.envs.dataset import ENV_ID, Dataset
from qrl.envs.errors import LayoutError
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import Layout, builtin_layouts
from tests.layouts import TWO_CELLS, layouts


@pytest.mark.parametrize("layout", builtin_layouts())
def test_whole_trajectories_replay_in_the_real_environment(layout: str) -> None:
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


def test_the_share_of_random_actions_is_epsilon() -> None:
    dataset = collect(CollectorSettings(trajectories=3000, epsilon=0.6, seed=1))
    assert dataset.layout is not None
    before = dataset.states[dataset.sources]
    goals = np.repeat(dataset.goals, dataset.lengths)
    greedy = ground_truth(dataset.layout).greedy(before, goals)
    # Where one action is greedy, another one shows exploration: probability epsilon * 3/4, and so on.
    for ties in (1, 2):
        chosen = greedy.sum(1) == ties
        astray = ~greedy[np.arange(len(greedy)), dataset.actions][chosen]
        interval = binomtest(int(astray.sum()), int(chosen.sum())).proportion_ci(0.9999)
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
    starts = dataset.states[dataset.offsets[:-1] + np.arange(500)]
    assert dataset.terminated.all()
    np.testing.assert_array_equal(dataset.lengths, ground_truth(dataset.layout).distances[starts, dataset.goals])


def as_bytes(dataset: Dataset, folder: Path) -> bytes:
    dataset.save(folder / "bytes.npz")
    return (folder / "bytes.npz").read_bytes()


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    made = CollectorSettings(layout="traps", trajectories=50, seed=3)
    assert as_bytes(collect(made), tmp_path) == as_bytes(collect(made), tmp_path)
    other = collect(made.model_copy(update={"seed": 4}))
    assert not np.array_equal(collect(made).actions[:100], other.actions[:100])


@pytest.mark.parametrize("count", [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_fewer_trajectories_are_the_first_of_more(count: int, tmp_path: Path) -> None:
    made = CollectorSettings(layout="corridor", trajectories=2 * BLOCK + 5, seed=7)
    small = made.model_copy(update={"trajectories": count})
    assert as_bytes(collect(made).first(count), tmp_path) == as_bytes(collect(small), tmp_path)


def test_blocks_differ() -> None:
    dataset = collect(CollectorSettings(layout="corridor", trajectories=2 * BLOCK, max_steps=20))
    assert not np.array_equal(dataset.lengths[:BLOCK], dataset.lengths[BLOCK:])


def test_golden_data() -> None:
    """What a seed means must not change silently: published datasets are named by their settings."""
    dataset = collect(CollectorSettings(trajectories=2, seed=0))
    assert dataset.num_transitions == 92
    assert dataset.goals.tolist() == [82, 153]
    assert dataset.actions[:12].tolist() == [3, 2, 0, 0, 0, 1, 1, 3, 0, 3, 0, 0]


@settings(max_examples=30)
@given(layouts(), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 12))
def test_any_layout_gives_valid_data(layout: Layout, epsilon: float, max_steps: int) -> None:
    made = CollectorSettings(layout=layout.text, trajectories=20, epsilon=epsilon, max_steps=max_steps)
    distances = ground_truth(layout).distances[np.ix_(layout.starts, layout.goals)]
    if np.isinf(distances).all(1).any():
        with pytest.raises(LayoutError, match="no goal can be reached"):
            collect(made)
        return
    dataset = collect(made)  # validated on the way: every transition is legal
    assert dataset.num_episodes == 20
    starts = dataset.states[dataset.offsets[:-1] + np.arange(20)]
    assert np.isin(starts, layout.starts).all()
    assert np.isin(dataset.goals, layout.goals).all()
    np.testing.assert_array_equal(dataset.terminated, dataset.last_states == dataset.goals)
    np.testing.assert_array_equal(dataset.truncated, ~dataset.terminated)
    assert (dataset.lengths[dataset.truncated] == max_steps).all()
    # No episode goes on after its goal.
    goals = np.repeat(dataset.goals, dataset.lengths)
    assert (dataset.states[dataset.sources] != goals).all()


def test_one_step_episodes() -> None:
    dataset = collect(CollectorSettings(layout=TWO_CELLS, trajectories=5, epsilon=0))
    assert dataset.lengths.tolist() == [1] * 5
    assert dataset.actions.tolist() == [1] * 5
