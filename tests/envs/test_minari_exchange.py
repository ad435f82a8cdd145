import os
import string
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import minigrid  # noqa: F401 - registers its environments
import numpy as np
import pytest
from gymnasium import spaces

import qrl
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.minari_exchange import from_minari, to_minari

minari = pytest.importorskip("minari", reason="Minari is not installed: pip install -e '.[minari]'")


@pytest.fixture(autouse=True)
def _temporary_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    imported = from_minari("doors/traps-v0")
    assert_same_data(imported, dataset)
    assert imported.header.source == "the Minari dataset doors/traps-v0"


def test_exported_data_matches_the_environment(dataset: Dataset) -> None:
    to_minari(dataset, "doors/traps-v0")
    stored = minari.load_dataset("doors/traps-v0")
    env = stored.recover_environment()
    assert env.unwrapped.layout == dataset.layout
    for episode in stored.iterate_episodes():
        goal = dataset.goals[episode.id]
        start = dataset.states[dataset.starts[episode.id]]
        cells = dataset.layout.cells.tolist() if dataset.layout else []
        observation, _ = env.reset(options={"start": cells[start], "goal": cells[goal]})
        for step, action in enumerate(episode.actions):
            for key in ("observation", "achieved_goal", "desired_goal"):
                np.testing.assert_array_equal(observation[key], episode.observations[key][step])
            observation, reward, terminated, _, _ = env.step(action)
            assert reward == episode.rewards[step]
            assert terminated == episode.terminations[step]


@pytest.mark.parametrize(
    ("recorded", "limit"),
    [
        ({"max_steps": 25}, 25),
        (None, 200),  # the environment's default
        ({"max_steps": 2}, 25),  # never shorter than an episode
    ],
)
def test_the_recovered_environment_has_the_step_limit(
    dataset: Dataset, recorded: dict[str, int | float] | None, limit: int
) -> None:
    header = dataset.header.model_copy(update={"collector": recorded})
    to_minari(replace(dataset, header=header), "doors/traps-v0")
    env = minari.load_dataset("doors/traps-v0").recover_environment()
    assert env.spec.max_episode_steps == env.unwrapped.max_steps == limit
    env.reset(seed=0, options={"start": (1, 8)})  # a wall to the left: the goal is never reached
    steps = next(step for step in range(1, limit + 1) if any(env.step(3)[2:4]))
    assert steps == limit


def test_data_without_layout_or_goals() -> None:
    dataset = Dataset.from_arrays([[0, 1], [2, 3], [0, 1]], [4, 0], [2], num_actions=5)
    to_minari(dataset, "arrays-v3")
    assert_same_data(from_minari("arrays-v3"), dataset)


def test_bad_ids_and_missing_data(dataset: Dataset) -> None:
    for bad_id in ("no version", "no-version", "space in-v0"):
        with pytest.raises(DatasetError, match="is not a Minari id"):
            to_minari(dataset, bad_id)
    with pytest.raises(DatasetError, match=r"no local Minari dataset absent-v0 \(local ones: none\)"):
        from_minari("absent-v0")
    to_minari(dataset.first(1), "twice-v0")
    with pytest.raises(DatasetError, match="already exists"):
        to_minari(dataset, "twice-v0")


@pytest.mark.filterwarnings("ignore::UserWarning")  # Minari warns about missing metadata
@pytest.mark.parametrize(
    ("observation_space", "action_space", "message"),
    [
        (spaces.Box(0, 1, (2,)), spaces.Box(0, 1, (1,)), "only Discrete from 0 is supported"),
        (spaces.Box(0, 1, (2, 2)), spaces.Discrete(2), "only a one-dimensional Box"),
        (spaces.Dict({"tags": spaces.MultiBinary(2)}), spaces.Discrete(2), "other-v0: tags is MultiBinary"),
    ],
)
def test_unsupported_spaces_are_refused(observation_space: Any, action_space: Any, message: str) -> None:
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


@pytest.mark.filterwarnings("ignore:Misconfigured:UserWarning")
@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("main_data.hdf5", b"", r"cannot be read \(OSError: .*; delete it"),
        ("metadata.json", b"{", "no local Minari dataset"),
        ("metadata.json", b'{"dataset_id": "damaged-v0", "minari_version": "0.5.3"}', r"cannot be read \("),
        ("metadata.json", None, r"metadata.json is not a regular file"),
    ],
)
def test_damaged_files(dataset: Dataset, file: str, content: bytes | None, message: str) -> None:
    to_minari(dataset.first(1), "damaged-v0")
    path = Path(os.environ["MINARI_DATASETS_PATH"]) / "damaged-v0" / "data" / file
    path.unlink()
    if content is None:
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        from_minari("damaged-v0")


def test_minari_is_optional(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    for call in (lambda: to_minari(dataset, "doors-v0"), lambda: from_minari("doors-v0")):
        with pytest.raises(DatasetError, match=r"Minari is not installed; .* pip install -e '\.\[minari\]'"):
            call()


@pytest.mark.filterwarnings("ignore::UserWarning")  # Minari warns about missing metadata
@pytest.mark.parametrize(
    ("env_id", "mission"), [("MiniGrid-Empty-5x5-v0", "left out"), ("MiniGrid-GoToDoor-5x5-v0", "as one of")]
)
def test_minigrids_own_observations(env_id: str, mission: str) -> None:
    env = gymnasium.make(env_id)
    # Minari stores no MissionSpace; the published datasets have texts.
    text = spaces.Text(100, charset=string.ascii_lowercase + " ")
    space = spaces.Dict({**env.observation_space.spaces, "mission": text})  # type: ignore[attr-defined]
    images, directions, missions, episodes = [], [], [], []
    for seed in range(4):
        steps = [env.reset(seed=seed)[0], *(env.step(action)[0] for action in (1, 2, 0, 2))]
        parts = {key: [step[key] for step in steps] for key in space.spaces}
        parts |= {key: np.stack(parts[key]) for key in ("image", "direction")}  # type: ignore[misc]
        images += list(parts["image"])
        directions += list(parts["direction"])
        missions += parts["mission"]
        ends = [False] * 3 + [True]
        episodes.append(
            minari.data_collector.EpisodeBuffer(
                id=seed, observations=parts, actions=np.array([1, 2, 0, 2]), rewards=[0.0] * 4,
                terminations=[False] * 4, truncations=ends,
            )
        )  # fmt: skip
    minari.create_dataset_from_buffers(
        "minigrid/own-v0", episodes, observation_space=space, action_space=env.action_space
    )
    imported = from_minari("minigrid/own-v0")
    assert "direction as one-hot vector" in imported.header.source
    assert "image flattened" in imported.header.source
    assert f"mission {mission}" in imported.header.source
    rows = imported.observations[imported.states]
    kinds = len(set(missions))
    assert rows.shape == (4 * 5, 4 + 7 * 7 * 3 + (kinds if kinds > 1 else 0))
    np.testing.assert_array_equal(rows[:, :4].argmax(1), directions)
    np.testing.assert_array_equal(rows[:, 4 : 4 + 147], np.reshape(images, (20, -1)))
    assert len({tuple(row) for row in rows[:, 151:].tolist()}) == kinds
    assert imported.header.spaces.num_actions == 7


def test_too_many_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    from qrl.envs.minari_parts import _encode_texts

    monkeypatch.setattr("qrl.envs.minari_parts.MAX_TEXTS", 2)
    with pytest.raises(DatasetError, match="mission has 3 different texts; at most 2"):
        _encode_texts(["a", "b", "c"], "x-v0: mission")


def test_noisy_data_has_the_reward_of_arriving() -> None:
    world = {"name": "noisy", "layout": "corridor"}
    noisy = qrl.collect(world=world, trajectories=5, epsilon=0)
    to_minari(noisy, "noisy-v0")
    for episode in minari.load_dataset("noisy-v0").iterate_episodes():
        assert episode.rewards.tolist() == [-1.0] * (len(episode.actions) - 1) + [0.0]
