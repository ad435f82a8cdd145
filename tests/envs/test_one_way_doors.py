import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from minigrid.core.grid import Grid
from minigrid.minigrid_env import MiniGridEnv

from qrl.common.errors import UserError
from qrl.envs.errors import LayoutError
from qrl.envs.layout import builtin_layouts
from qrl.envs.one_way_doors import OneWayDoor, OneWayDoorsEnv
from qrl.envs.registration import ENV_ID
from tests.layouts import TWO_CELLS


@pytest.fixture
def corridor() -> OneWayDoorsEnv:
    """Row 1 is S . > G, with a path back through a door to the left."""
    return OneWayDoorsEnv("corridor", max_steps=9)


@pytest.mark.parametrize("layout", builtin_layouts())
def test_gymnasium_env_checker(layout: str) -> None:
    env = gymnasium.make(ENV_ID, layout=layout, render_mode="rgb_array")
    check_env(env)
    assert isinstance(env, MiniGridEnv)  # no wrapper hides the goal functions


def test_reset_comes_first() -> None:
    env = gymnasium.make(ENV_ID, layout="corridor", render_mode="rgb_array")
    for call in (lambda: env.step(0), env.render):
        with pytest.raises(ResetNeeded, match=r"call env\.reset\(\) before"):
            call()
    env.reset()
    env.step(0)
    env.render()


def test_make_in_a_fresh_interpreter() -> None:
    program = (
        "import gymnasium as gym\n"
        "if __name__ == '__main__':\n"
        "    env = gym.make('qrl.envs:qrl/OneWayDoors-v0', layout='traps')\n"
        "    print(env.unwrapped.layout.name)\n"
        "    for mode in ('sync', 'async'):\n"
        "        envs = gym.make_vec('qrl.envs:qrl/OneWayDoors-v0', 2, mode, layout='corridor')\n"
        "        observations, infos = envs.reset(seed=0)\n"
        "        print(observations['observation'].shape, envs.step([1, 1])[1])\n"
        "        envs.close()\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == ["traps", "(2, 18) [-1. -1.]", "(2, 18) [-1. -1.]"], run.stderr


def test_an_episode_by_hand(corridor: OneWayDoorsEnv) -> None:
    observation, info = corridor.reset(options={"start": (1, 1), "goal": (4, 1)})
    table = corridor.layout.observations
    assert info == {"is_success": False, "success": False, "state": 0, "goal": 3, "steps": 0}
    for action, state, reward, terminated in [(0, 0, -1, False), (1, 1, -1, False), (1, 2, -1, False), (1, 3, 0, True)]:
        observation, *outcome, info = corridor.step(action)
        assert outcome == [reward, terminated, False]
        assert info["state"] == state
        assert info["is_success"] == info["success"] == terminated
        np.testing.assert_array_equal(observation["observation"], table[state])
        np.testing.assert_array_equal(observation["achieved_goal"], table[state])
        np.testing.assert_array_equal(observation["desired_goal"], table[3])


def test_truncation_only_at_the_step_limit(corridor: OneWayDoorsEnv) -> None:
    corridor.reset(options={"start": (1, 1), "goal": (4, 1)})
    flags = [corridor.step(0)[2:4] for _ in range(9)]
    assert flags == [(False, False)] * 8 + [(False, True)]


def test_goal_on_the_last_allowed_step_terminates() -> None:
    env = OneWayDoorsEnv(TWO_CELLS, max_steps=1)
    env.reset()
    assert env.step(1)[1:4] == (0.0, True, False)


def test_goal_functions_on_batches(corridor: OneWayDoorsEnv) -> None:
    table = corridor.layout.observations
    achieved, desired = table[[[0, 1, 2], [3, 4, 5]]], table[[[0, 2, 2], [4, 4, 4]]]
    same = np.array([[True, False, True], [False, True, False]])
    infos: list[dict[str, Any]] = [{"steps": 8}, {"steps": 9}, {"steps": 9}]
    np.testing.assert_array_equal(corridor.compute_terminated(achieved, desired, {}), same)
    np.testing.assert_array_equal(corridor.compute_reward(achieved, desired, {}), np.where(same, 0, -1))
    truncated = [[False, True, False], [False, False, True]]
    np.testing.assert_array_equal(corridor.compute_truncated(achieved, desired, infos), truncated)
    as_arrays = {"steps": np.array([8, 9, 9])}
    np.testing.assert_array_equal(corridor.compute_truncated(achieved, desired, as_arrays), truncated)


def test_goal_functions_agree_with_stepping() -> None:
    env = OneWayDoorsEnv("traps", max_steps=30)
    for episode in range(20):
        env.reset(seed=episode)
        done = False
        while not done:
            observation, reward, terminated, truncated, info = env.step(env.np_random.integers(4))
            task = observation["achieved_goal"], observation["desired_goal"], info
            assert env.compute_reward(*task) == reward
            assert env.compute_terminated(*task) == terminated
            assert env.compute_truncated(*task) == truncated
            done = terminated or truncated


def test_reset_samples_starts_and_reachable_goals() -> None:
    env = OneWayDoorsEnv("traps")
    env.reset(seed=0)
    infos = [env.reset()[1] for _ in range(500)]
    starts, goals = {info["state"] for info in infos}, {info["goal"] for info in infos}
    assert starts == set(env.layout.starts.tolist())
    assert goals <= set(env.layout.goals.tolist())
    assert len(goals) > 70
    again = OneWayDoorsEnv("traps")
    again.reset(seed=0)
    assert [again.reset()[1] for _ in range(500)] == infos


def test_start_or_goal_can_be_fixed() -> None:
    env = OneWayDoorsEnv("traps")
    env.reset(seed=0)
    trapped = (1, 8)  # in the lower left room, which has no exit
    for _ in range(50):
        goal = env.reset(options={"start": trapped})[1]["goal"]
        assert np.isfinite(env.truth.distances[env.layout.state_ids[8, 1], goal])
        assert env.reset(options={"goal": trapped})[1]["state"] in env.layout.starts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": (1, 1), "goal": (1, 1)}, "start and goal are both"),
        ({"start": (0, 0)}, "is a wall"),
        ({"goal": (9, 1)}, "outside the layout"),
        ({"goal": (-1, 1)}, "outside the layout"),
        ({"goal": 3}, "must be a cell"),
        ({"begin": (1, 1)}, "unknown"),
    ],
)
def test_bad_options(corridor: OneWayDoorsEnv, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        corridor.reset(options=options)


def test_no_reachable_goal() -> None:
    env = OneWayDoorsEnv("#####\n#S>G#\n#####")
    with pytest.raises(UserError, match="no goal to sample, as the goal would be unreachable"):
        env.reset(options={"start": (3, 1)})


@pytest.mark.parametrize("action", [-1, 4, 1.5, "up", None])
def test_bad_actions(corridor: OneWayDoorsEnv, action: Any) -> None:
    corridor.reset(seed=0)
    with pytest.raises(UserError, match="must be one of 0, 1, 2, 3"):
        corridor.step(action)


def test_bad_arguments() -> None:
    with pytest.raises(UserError, match="max_steps"):
        OneWayDoorsEnv(max_steps=0)
    with pytest.raises(LayoutError, match="no goal can be reached"):
        OneWayDoorsEnv("######\n#S#SG#\n######")


def test_observations_are_copies(corridor: OneWayDoorsEnv) -> None:
    observation, _ = corridor.reset(seed=0)
    before = corridor.layout.observations.copy()
    for array in observation.values():
        array[:] = 7
    np.testing.assert_array_equal(corridor.layout.observations, before)


def test_frames_show_doors_goal_and_agent() -> None:
    env = OneWayDoorsEnv("corridor", render_mode="rgb_array", tile_size=16)

    def tile(x: int, y: int) -> np.ndarray:
        frame: np.ndarray = np.asarray(env.render())
        assert frame.shape == (5 * 16, 6 * 16, 3)
        return frame[16 * y : 16 * (y + 1), 16 * x : 16 * (x + 1)].astype(int)

    env.reset(options={"start": (1, 1), "goal": (4, 1)})
    right, left = tile(3, 1), tile(3, 3)
    assert (np.abs(right - left).sum(-1) > 100).any()  # the tile cache distinguishes headings
    assert (np.abs(right - left[:, ::-1]).max(-1) > 100).mean() < 0.1  # mirrored except for the edges
    red, green, _ = tile(4, 1).mean((0, 1))
    assert green > 200 > 50 > red
    red, green, _ = tile(1, 1).max((0, 1))
    assert red == 255
    env.reset(options={"start": (1, 1), "goal": (3, 1)})
    assert (tile(3, 1)[0, 0] == [0, 255, 0]).all()  # a door that is the goal is green
    env.step(1)
    assert tile(1, 1)[:, :, 0].max() < 255


def test_every_heading_has_a_distinct_tile() -> None:
    up, *others = (Grid.render_tile(OneWayDoor(heading), tile_size=16).astype(int) for heading in range(4))
    for heading, tile in enumerate(others, 1):
        assert np.abs(np.rot90(up, -heading) - tile).max() == 0
        assert (np.abs(up - tile).max(-1) > 100).sum() >= 20  # of 256 pixels


def test_human_rendering_without_a_screen() -> None:
    env = OneWayDoorsEnv("corridor", render_mode="human")
    env.metadata = {**env.metadata, "render_fps": 1000}
    env.reset(seed=0)
    env.step(1)
    assert env.window is not None
    env.close()


def test_a_fixed_start_or_goal_needs_no_table_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrl.envs.ground_truth.MAX_TABLE", 1)
    env = OneWayDoorsEnv(TWO_CELLS)
    assert env.reset(options={"start": (1, 1)})[1]["goal"] == 1
    assert env.reset(options={"goal": (2, 1)})[1]["state"] == 0
    assert "distances" not in vars(env.truth)
