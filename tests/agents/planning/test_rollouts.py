"""Episodes in real environments, and that they agree with the bulk walk."""

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrl.agents.planning.planner import RandomPolicy, TablePolicy
from qrl.agents.planning.references import oracle_steps
from qrl.agents.planning.rollouts import check_env, open_env, outcome, play, play_seeds, play_tasks
from qrl.envs.errors import WorldError
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.header import Spaces
from qrl.envs.layout import Layout
from tests.agents.goal_envs import Ring
from tests.layouts import layouts


@given(layouts(max_side=4), st.integers(0, 2**32), st.integers(1, 12))
def test_stepping_and_the_bulk_walk_agree_episode_by_episode(layout: Layout, seed: int, max_steps: int) -> None:
    """For any policy, including ones that hit walls and run in circles, on every task of any layout."""
    truth = GroundTruth(layout)
    rng = np.random.default_rng(seed)
    states = len(layout.cells)
    # Half optimal, half random, so that all causes of failure occur.
    best = TablePolicy.greedy(oracle_steps(truth), layout.observations, seed).table
    table = np.where(rng.random((states, states)) < 0.5, best, rng.integers(4, size=(states, states)))
    policy = TablePolicy(table, layout.observations, RandomPolicy(4, 0))
    starts, goals = (part.ravel() for part in np.meshgrid(layout.starts, layout.goals))
    try:
        truth.check_tasks()
    except ValueError:
        return  # the environment refuses such a layout
    walked = policy.walk(truth, starts, goals, max_steps)
    episodes = play_tasks(layout, policy, starts, goals, max_steps)
    played = outcome(episodes)
    np.testing.assert_array_equal(played.success, walked.success)
    np.testing.assert_array_equal(played.steps, walked.steps)
    np.testing.assert_array_equal(played.cause, walked.cause)
    for episode, start, goal in zip(episodes, starts, goals, strict=True):
        state = start
        for action, after in zip(episode.actions, episode.observations[1:], strict=True):
            assert action == table[state, goal]
            state = truth.transitions[state, action]
            np.testing.assert_array_equal(after, layout.observations[state])


def ring_policy(action: int) -> Any:
    class Always:
        deterministic = True

        def act(self, observation: object, goal: object) -> int:
            return action

    return Always()


@pytest.mark.parametrize("success_key", ["is_success", "success", None])
def test_any_goal_environment(success_key: str | None) -> None:
    env = Ring(success_key=success_key)
    episodes = play_seeds(env, ring_policy(1), episodes=20, seed=3)
    assert all(episode.success for episode in episodes)
    assert {len(episode.actions) for episode in episodes} == {1, 2, 3, 4, 5}
    again = play_seeds(env, ring_policy(1), episodes=20, seed=3)
    assert [len(episode.actions) for episode in again] == [len(episode.actions) for episode in episodes]


def test_failures_in_any_environment() -> None:
    assert play(Ring(), ring_policy(0), seed=0).cause == "blocked"
    assert play(Ring(), ring_policy(2), seed=0).cause == "ended"
    random = outcome(play_seeds(Ring(), RandomPolicy(3, 0), episodes=30, seed=0))
    assert set(random.cause) <= {"", "ended"}
    # Where info does not mention success, termination is success.
    assert play(Ring(success_key=None), ring_policy(2), seed=0).success


def test_the_environments_own_cap_is_kept() -> None:
    env = gymnasium.wrappers.TimeLimit(Ring(), 4)
    episode = play(env, ring_policy(0), seed=0)
    assert (len(episode.actions), episode.cause) == (4, "blocked")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Ring(num_actions=5), "has 5 actions, but the data has 3"),
        (Ring(dim=4), "observation has dimension 4, but the data's observations have 2"),
        (gymnasium.make("CartPole-v1"), "has 2 actions"),
        (gymnasium.make("Pendulum-v1"), "must be Discrete"),
    ],
)
def test_environments_that_do_not_fit(env: Any, message: str) -> None:
    with pytest.raises(WorldError, match=message):
        check_env(env, Spaces(observation_dim=2, num_actions=3))


def test_an_environment_without_goals() -> None:
    with pytest.raises(WorldError, match="CartPole-v1: observations must be a Dict"):
        check_env(gymnasium.make("CartPole-v1"), Spaces(observation_dim=4, num_actions=2))


@pytest.mark.parametrize("name", ["Nowhere-v0", "no_such_module:Ring-v0"])
def test_unknown_environments(name: str) -> None:
    with pytest.raises(WorldError, match=f"the environment {name} cannot be made"):
        open_env(name)


def test_an_environment_of_a_module_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_ring_env.py").write_text(
        "import gymnasium\n"
        "gymnasium.register('MyRing-v0', entry_point='tests.agents.goal_envs:Ring', kwargs={'states': 4})\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    env = open_env("my_ring_env:MyRing-v0")
    assert isinstance(env.unwrapped, Ring)
    assert env.unwrapped.states == 4
