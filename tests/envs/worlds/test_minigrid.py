"""MiniGrid environments as worlds: counted by hand, replayed in the environment, and what cannot be enumerated."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Box, Goal, Key
from minigrid.minigrid_env import MiniGridEnv
from minigrid.wrappers import FullyObsWrapper

import qrl
from qrl import make_world
from qrl.common.errors import ConfigError
from qrl.envs.dataset import Dataset
from qrl.envs.errors import WorldError
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.worlds.enumeration import Enumeration

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, DONE = range(7)


def test_an_empty_room_by_hand() -> None:
    world = make_world("minigrid", env="MiniGrid-Empty-5x5-v0")
    # Eight cells with four directions, and the goal, which is entered in two and ends the episode.
    assert (world.num_states, world.num_actions, world.deterministic) == (8 * 4 + 2, 7, True)
    assert world.starts.tolist() == [0]
    assert len(world.goals) == 2
    assert (world.transitions[world.goals] == world.goals[:, None]).all()
    assert (world.transitions[0, [PICKUP, DROP, TOGGLE, DONE]] == 0).all()
    truth = GroundTruth(world)
    assert sorted(truth.between(np.zeros(2, int), world.goals)) == [5, 6]  # with one turn, or with two
    assert world.cells[0].tolist() == [1, 1]
    assert not world.notices
    everything = make_world("minigrid", env="MiniGrid-Empty-5x5-v0", starts="all", goals="all")
    assert (len(everything.starts), len(everything.goals)) == (32, 34)


def replay(env_id: str, seed: int = 0) -> None:
    """Follow shortest paths to every goal in the real environment, by observations as its users see them."""
    world = make_world("minigrid", env=env_id, seed=seed)
    truth = GroundTruth(world)
    starts, goals = truth.all_tasks()
    assert len(goals)
    distances = truth.distances_to(goals)
    env: Any = FullyObsWrapper(gymnasium.make(env_id))
    for task, (start, goal) in enumerate(zip(starts, goals, strict=True)):
        observation, _ = env.reset(seed=seed)
        state, steps, terminated, reward = int(start), 0, False, 0.0
        while not terminated:
            np.testing.assert_array_equal(observation["image"].ravel(), world.observations[state])
            assert tuple(world.cells[state]) == tuple(env.unwrapped.agent_pos)
            action = int(truth.greedy(np.array([state]), np.array([task]), distances)[0].argmax())
            state, steps = int(world.transitions[state, action]), steps + 1
            observation, reward, terminated, truncated, _ = env.step(action)
            assert not truncated
        assert (state, steps) == (goal, distances[start, task])
        assert reward > 0


@pytest.mark.parametrize("env_id", ["LavaGapS7", "KeyCorridorS3R1", "DoorKey-5x5", "Unlock"])
def test_the_oracle_succeeds_in_the_environment(env_id: str) -> None:
    replay(f"MiniGrid-{env_id}-v0", seed=3)


def test_random_walks_agree_with_the_environment() -> None:
    env_id = "MiniGrid-DoorKey-5x5-v0"
    world = make_world("minigrid", env=env_id)
    env: Any = FullyObsWrapper(gymnasium.make(env_id, max_steps=10_000))
    rng = np.random.default_rng(0)
    visited = set()
    for _ in range(20):
        env.reset(seed=0)
        state = 0
        for action in rng.integers(7, size=300):
            observation, _, terminated, _, _ = env.step(int(action))
            state = int(world.transitions[state, action])
            visited.add(state)
            np.testing.assert_array_equal(observation["image"].ravel(), world.observations[state])
            if terminated:
                break
    assert len(visited) > 50


def test_lava_is_a_dead_end() -> None:
    world = make_world("minigrid", env="MiniGrid-LavaGapS7-v0")
    stays = np.flatnonzero((world.transitions == np.arange(world.num_states)[:, None]).all(1))
    lava = np.setdiff1d(stays, world.goals)
    assert len(lava) > 0
    assert np.isinf(GroundTruth(world).distances_to(world.goals)[lava]).all()


def test_resets_are_joined_and_equal_ones_are_one() -> None:
    one = make_world("minigrid", env="MiniGrid-Empty-5x5-v0")
    assert make_world("minigrid", env="MiniGrid-Empty-5x5-v0", resets=3) == one  # its grid is always the same
    two = make_world("minigrid", env="MiniGrid-LavaGapS5-v0", resets=6)
    assert len(two.starts) > 1
    assert (
        qrl.collect(world={"name": "minigrid", "env": "MiniGrid-LavaGapS5-v0", "resets": 6}, trajectories=5).world
        == two
    )


def test_slip() -> None:
    world = make_world("minigrid", env="MiniGrid-LavaGapS5-v0", slip=0.1)
    assert not world.deterministic
    assert np.isfinite(GroundTruth(world).distances_to(world.goals)[world.starts]).any()


class BoxedKey(MiniGridEnv):  # type: ignore[misc]
    """A corridor with a box that contains a key; the goal is to carry the key."""

    def __init__(self, **options: Any) -> None:
        mission = MissionSpace(mission_func=lambda: "get the key")
        super().__init__(mission_space=mission, width=5, height=3, max_steps=50, **options)

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        self.grid.set(3, 1, Box("blue", contains=Key("red")))
        self.agent_pos, self.agent_dir = (1, 1), 0

    def step(self, action: Any) -> Any:
        observation, _, _, truncated, info = super().step(action)
        found = self.carrying is not None and self.carrying.type == "key"
        return observation, float(found), found, truncated, info


def test_a_box_and_what_is_in_it() -> None:
    states = Enumeration(BoxedKey(), 1000)
    states.explore(0)
    table = states.transitions
    state = 0
    for action in (FORWARD, TOGGLE, PICKUP):
        state = table[state, action]
    assert states.succeeded[state]
    # The box can also be carried away, and is put down elsewhere.
    state = 0
    for action in (FORWARD, PICKUP, LEFT, LEFT, DROP, TOGGLE, PICKUP):
        state = table[state, action]
    assert states.succeeded[state]


def test_what_cannot_be_enumerated() -> None:
    def refused(**settings: Any) -> str:
        with pytest.raises(WorldError) as caught:
            make_world("minigrid", **settings)
        return str(caught.value)

    assert "its step is not deterministic: action" in refused(env="MiniGrid-Dynamic-Obstacles-5x5-v0")
    assert "it has more than 100 states; raise world.max_states" in refused(max_states=100)
    assert "the environment Nowhere-v0 cannot be made" in refused(env="Nowhere-v0")
    assert "CartPole-v1 is not a MiniGrid environment" in refused(env="CartPole-v1")
    with pytest.raises(ConfigError, match="env: string should match pattern"):
        make_world("minigrid", env="os:MiniGrid-Empty-5x5-v0")


def test_a_task_that_never_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Goal, "can_overlap", lambda self: False)
    monkeypatch.setattr(MiniGridEnv, "_reward", lambda self: 0)
    with pytest.raises(WorldError, match="MiniGrid-Empty-5x5-v0 never succeeds"):
        make_world("minigrid", env="MiniGrid-Empty-5x5-v0")


def test_a_dataset_that_names_a_larger_environment_is_refused_at_once() -> None:
    """The search for states ends with the number that the file has, whatever its header says."""
    dataset = qrl.collect(world={"name": "minigrid", "env": "MiniGrid-Empty-5x5-v0"}, trajectories=2)
    assert dataset.world == make_world("minigrid", env="MiniGrid-Empty-5x5-v0")
    header = dataset.header
    assert header.world is not None
    larger = header.world.model_copy(update={"params": {**header.world.params, "env": "MiniGrid-LockedRoom-v0"}})
    other = Dataset(**dataset.arrays, header=header.model_copy(update={"world": larger}))
    with pytest.raises(WorldError, match="it has more than 34 states"):
        _ = other.world
