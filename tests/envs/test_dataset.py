from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from qrl.envs import npz
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.header import TrajectoryHeader
from qrl.envs.layout import Layout, load_layout


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return collect(CollectorSettings(layout="traps", trajectories=40, max_steps=60))


def assert_equal(left: Dataset, right: Dataset) -> None:
    for name, array in left.arrays.items():
        np.testing.assert_array_equal(array, right.arrays[name], err_msg=name)
    assert left.header == right.header
    assert left.content_hash == right.content_hash


def test_round_trip(dataset: Dataset, tmp_path: Path) -> None:
    dataset.save(tmp_path / "d.npz")
    assert_equal(Dataset.load(tmp_path / "d.npz"), dataset)
    assert [path.name for path in tmp_path.iterdir()] == ["d.npz"]


def test_files_are_compact_and_free_of_pickle(tmp_path: Path) -> None:
    dataset = collect(CollectorSettings(trajectories=1000))
    dataset.save(tmp_path / "d.npz")
    with np.load(tmp_path / "d.npz", allow_pickle=False) as file:
        assert set(file) == {"header", *Dataset.FORMAT.specs}
    assert (tmp_path / "d.npz").stat().st_size < 12 * dataset.num_transitions


def test_repr_shows_sizes(dataset: Dataset) -> None:
    shown = repr(dataset)
    assert f"40 episodes, {dataset.num_transitions:,} transitions, 107 states of dimension 18, 4 actions" in shown


def test_first_keeps_whole_episodes(dataset: Dataset) -> None:
    part = dataset.first(7)
    assert part.num_episodes == 7
    np.testing.assert_array_equal(part.lengths, dataset.lengths[:7])
    np.testing.assert_array_equal(part.states, dataset.states[: part.num_transitions + 7])
    np.testing.assert_array_equal(part.last_states, dataset.last_states[:7])
    assert_equal(dataset.first(40), dataset)
    for count in (0, 41):
        with pytest.raises(DatasetError, match="there are 40"):
            dataset.first(count)


# from_arrays

ARRAYS: dict[str, Any] = {
    # Two episodes, of two actions and of one, in a world of three states.
    "observations": [[0, 0], [1, 0], [2, 5], [1, 0], [0, 0]],
    "actions": [1, 1, 0],
    "lengths": [2, 1],
    "num_actions": 3,
}


def test_from_arrays_finds_the_distinct_states() -> None:
    dataset = Dataset.from_arrays(**ARRAYS, terminated=[True, False], goals=[[2, 5], [7, 7]])
    np.testing.assert_array_equal(dataset.observations, [[0, 0], [1, 0], [2, 5], [7, 7]])
    assert dataset.states.tolist() == [0, 1, 2, 1, 0]
    assert dataset.goals.tolist() == [2, 3]
    assert dataset.offsets.tolist() == [0, 2, 3]
    assert dataset.sources.tolist() == [0, 1, 3]
    assert dataset.last_states.tolist() == [2, 0]
    assert (dataset.terminated.tolist(), dataset.truncated.tolist()) == ([True, False], [False, True])
    assert dataset.header.spaces.num_actions == 3
    assert dataset.layout is None


def test_from_arrays_without_goals(tmp_path: Path) -> None:
    dataset = Dataset.from_arrays(**ARRAYS)
    assert dataset.goals.tolist() == [-1, -1]
    assert dataset.truncated.all()
    dataset.save(tmp_path / "own.npz")
    assert_equal(Dataset.load(tmp_path / "own.npz"), dataset)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.data())
def test_from_arrays_preserves_observations(lengths: list[int], data: st.DataObject) -> None:
    shape = (sum(lengths) + len(lengths), 2)
    observations = data.draw(arrays.arrays(np.float32, shape, elements=st.sampled_from([-1.5, -0.0, 0.0, 3.0])))
    dataset = Dataset.from_arrays(observations, [0] * sum(lengths), lengths, num_actions=1)
    np.testing.assert_array_equal(dataset.observations[dataset.states], observations)
    assert len(dataset.observations) == len({tuple(row) for row in (observations + 0.0).tolist()})


def test_from_arrays_uses_the_state_ids_of_the_layout(dataset: Dataset) -> None:
    rebuilt = Dataset.from_arrays(
        dataset.observations[dataset.states],
        dataset.actions,
        dataset.lengths,
        num_actions=4,
        terminated=dataset.terminated,
        goals=dataset.observations[dataset.goals],
        layout=dataset.layout,
    )
    for name, array in dataset.arrays.items():
        np.testing.assert_array_equal(rebuilt.arrays[name], array, err_msg=name)


def test_negative_zero_equals_zero() -> None:
    layout = Layout("#####\n#S.G#\n#####")
    rows = layout.observations[[0, 1, 2]].copy()
    rows[rows == 0] *= -1
    assert Dataset.from_arrays(rows, [1, 1], [2], num_actions=4, layout=layout).states.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"observations": [[0, 0], [1, 0], [2, 5], [1, 0]]},
            "4 rows, but 2 episodes with 3 actions in total need 5",
        ),
        ({"observations": [0, 1, 2, 1, 0]}, "observations: must have 2 dimensions"),
        ({"observations": [["a", "b"]] * 5}, "observations: not a table of numbers"),
        ({"observations": [[0, np.nan]] * 5}, "observations: all values must be finite"),
        ({"actions": [1, 3, 0]}, "actions: all values must be from 0 to 2"),
        ({"actions": [1, 0]}, "actions: 2 entries, but must have 3"),
        ({"actions": [1.0, 0.5, 0.0]}, "actions: must be a 1-dimensional array of integers"),
        ({"actions": [2**32, 1, 0]}, "actions: must be .* integers below"),
        ({"num_actions": 0}, "from_arrays: num_actions: input should be greater than or equal to 1"),
        ({"num_actions": 10**18}, "from_arrays: num_actions: input should be less than or equal to 65536"),
        ({"actions": [-(2**63), 1, 0]}, "actions: must be .* integers below"),
        ({"lengths": [3, 0]}, "episode 1 has no actions"),
        ({"observations": np.zeros((0, 2)), "actions": np.zeros(0, int), "lengths": np.zeros(0, int)}, "no episodes"),
        ({"terminated": [True]}, "terminated: must be 2 booleans, one per episode"),
        ({"terminated": [1, 0]}, "terminated: must be 2 booleans, one per episode, not int64"),
        (
            {"truncated": [True, False, True]},
            r"truncated: must be 2 booleans, .* not bool of shape \(3,\)",
        ),
        ({"goals": [[0, 0]]}, "goals: the shape is"),
        ({"goals": [[0, 0, 0], [0, 0, 0]]}, "goals: the shape is"),
        (
            {"layout": load_layout("corridor"), "observations": np.zeros((5, 18)), "num_actions": 4},
            "is not a state of",
        ),
    ],
)
def test_bad_arrays_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        Dataset.from_arrays(**{**ARRAYS, **change})


# Validation


def test_impossible_transitions_are_refused(dataset: Dataset) -> None:
    states = dataset.states.copy()
    index = dataset.sources[int(dataset.offsets[3]) + 1] + 1
    states[index] = (states[index] + 50) % 107
    with pytest.raises(DatasetError, match=r"impossible in the layout, the first in episode 3, step 1"):
        replace(dataset, states=states)


def test_a_terminated_episode_must_end_at_its_goal(dataset: Dataset) -> None:
    goals = dataset.goals.copy()
    goals[5] = (goals[5] + 1) % 107
    assert dataset.terminated[5]
    with pytest.raises(DatasetError, match="terminated: episode 5"):
        replace(dataset, goals=goals)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("states", np.int32(107), "states: all values must be from 0 to 106"),
        ("states", np.int32(-1), "states: all values must be"),
        ("goals", np.int32(-2), "goals: all values must be from -1"),
        ("actions", np.int32(4), "actions: all values must be from 0 to 3"),
        ("offsets", np.int64(1), "offsets: .* the first of them 0"),
        ("observations", np.float32(np.inf), "observations: all values must be finite"),
        ("observations", np.float32(0.123), "do not match the layout"),
    ],
)
def test_bad_values_are_refused(dataset: Dataset, name: str, value: Any, message: str) -> None:
    changed = getattr(dataset, name).copy()
    changed.flat[0] = value
    with pytest.raises(DatasetError, match=message):
        replace(dataset, **{name: changed})


def test_wrong_dtypes_and_headers_are_refused(dataset: Dataset) -> None:
    with pytest.raises(DatasetError, match="states: must be 1-dimensional int32, not 1-dimensional int64"):
        replace(dataset, states=dataset.states.astype(np.int64))
    header = dataset.header.model_copy(update={"layout": "nonsense"})
    with pytest.raises(DatasetError, match="header key layout"):
        replace(dataset, header=header)
    spaces = dataset.header.spaces.model_copy(update={"observation_dim": 3})
    with pytest.raises(DatasetError, match="18 columns, but the header declares 3"):
        replace(dataset, header=dataset.header.model_copy(update={"spaces": spaces}))


def test_a_bad_header_names_file_and_key(dataset: Dataset, tmp_path: Path) -> None:
    header = dataset.header.model_dump()
    npz.write(tmp_path / "d.npz", Dataset.FORMAT, {**header, "spaces": {"observation_dim": "many"}}, dataset.arrays)
    with pytest.raises(DatasetError, match=r"d\.npz: header: spaces\.observation_dim"):
        Dataset.load(tmp_path / "d.npz")


# The format is fixed: what an earlier release wrote must load, with the same hash.

HEADER: dict[str, Any] = {
    "source": "arrays",
    "spaces": {"observation_dim": 2, "num_actions": 3},
    "env_id": None,
    "layout": None,
    "layout_name": None,
    "collector": None,
    "versions": {"qrl": "0.1.0", "numpy": "2.0.0"},
}


def test_old_files_load(tmp_path: Path) -> None:
    dataset = Dataset.from_arrays(**ARRAYS)
    npz.write(tmp_path / "old.npz", Dataset.FORMAT, HEADER, dataset.arrays)
    loaded = Dataset.load(tmp_path / "old.npz")
    assert loaded.header == TrajectoryHeader(**HEADER)
    assert loaded.content_hash == "ef20c53fcf9afeafecafbb8b116de03f792883b469e3a159e35537ee293da454"
