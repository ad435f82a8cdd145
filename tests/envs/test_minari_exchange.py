from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.minari_exchange import from_minari, to_minari

minari = pytest.importorskip("minari", reason='Minari is not installed: pip install "qrl[minari]"')


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return collect(CollectorSettings(layout="traps", trajectories=12, max_steps=25))


def assert_same_data(left: Dataset, right: Dataset) -> None:
    for name, array in left.arrays.items():
        np.testing.assert_array_equal(array, right.arrays[name], err_msg=name)
    assert left.header.spaces == right.header.spaces
    assert left.header.layout == right.header.layout


def test_round_trip(dataset: Dataset) -> None:
    assert dataset.truncated.any()
    assert dataset.terminated.any()
    to_minari(dataset, "doors/traps-v0")
    back = from_minari("doors/traps-v0")
    assert_same_data(back, dataset)
    assert back.header.source == "the Minari dataset doors/traps-v0"


def test_exported_data_is_what_the_environment_gives(dataset: Dataset) -> None:
    to_minari(dataset, "doors/traps-v0")
    stored = minari.load_dataset("doors/traps-v0")
    env = stored.recover_environment()
    assert env.unwrapped.layout == dataset.layout
    for episode in stored.iterate_episodes():
        goal = dataset.goals[episode.id]
        start = dataset.states[dataset.offsets[episode.id] + episode.id]
        cells = dataset.layout.cells.tolist() if dataset.layout else []
        observation, _ = env.reset(options={"start": cells[start], "goal": cells[goal]})
        for step, action in enumerate(episode.actions):
            for key in ("observation", "achieved_goal", "desired_goal"):
                np.testing.assert_array_equal(observation[key], episode.observations[key][step])
            observation, reward, terminated, _, _ = env.step(action)
            assert reward == episode.rewards[step]
            assert terminated == episode.terminations[step]


def test_own_data_without_layout_or_goals() -> None:
    own = Dataset.from_arrays([[0, 1], [2, 3], [0, 1]], [4, 0], [2], num_actions=5)
    to_minari(own, "own-v3")
    assert_same_data(from_minari("own-v3"), own)


def test_bad_ids_and_missing_data(dataset: Dataset) -> None:
    with pytest.raises(DatasetError, match="is no Minari id"):
        to_minari(dataset, "no version")
    with pytest.raises(DatasetError, match="no local Minari dataset absent-v0; local ones: none"):
        from_minari("absent-v0")
    to_minari(dataset.first(1), "twice-v0")
    with pytest.raises(DatasetError, match="exists already"):
        to_minari(dataset, "twice-v0")


@pytest.mark.filterwarnings("ignore::UserWarning")  # Minari misses an author and so on
@pytest.mark.parametrize(
    ("observation_space", "action_space", "message"),
    [
        (spaces.Box(0, 1, (2,)), spaces.Box(0, 1, (1,)), "only Discrete actions"),
        (spaces.Box(0, 1, (2, 2)), spaces.Discrete(2), "only a one-dimensional Box"),
        (spaces.Dict({"image": spaces.Box(0, 1, (2,))}), spaces.Discrete(2), "only a one-dimensional Box"),
    ],
)
def test_spaces_that_do_not_fit(observation_space: Any, action_space: Any, message: str) -> None:
    def samples(space: spaces.Space[Any], count: int) -> Any:
        if isinstance(space, spaces.Dict):
            return {key: samples(part, count) for key, part in space.items()}
        return np.stack([space.sample() for _ in range(count)])

    episode = minari.data_collector.EpisodeBuffer(
        observations=samples(observation_space, 2),
        actions=samples(action_space, 1),
        rewards=[0.0],
        terminations=[True],
        truncations=[False],
    )
    minari.create_dataset_from_buffers(
        "other-v0", [episode], observation_space=observation_space, action_space=action_space
    )
    with pytest.raises(DatasetError, match=message):
        from_minari("other-v0")
