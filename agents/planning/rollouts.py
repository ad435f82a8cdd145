"""Episodes in a real environment: any gymnasium environment with goals and Discrete actions."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from tqdm import tqdm

import qrl.envs  # noqa: F401 - registers the environment
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import MAX_STEPS, Ids, Outcome, Policy, Steps, as_rows
from qrl.common.errors import UserError
from qrl.common.imports import search_working_directory
from qrl.envs.errors import WorldError
from qrl.envs.header import Spaces
from qrl.envs.layout import Layout
from qrl.envs.registration import ENV_ID

Env = gymnasium.Env[Any, Any]
Frame = NDArray[np.uint8]
Estimate = Callable[[NDArray[np.float32], NDArray[np.float32]], float]  # of the steps from an observation to a goal


@dataclass(frozen=True)
class Episode:
    """observations: T + 1 of them; cause: as in `Outcome`, or "ended" where the world ended it short of the goal.

    Of an episode to be looked at, also for each observation: the frame; in MiniGrid's environments, where in the frame
    the agent is, as fractions of its width and height; and the estimated steps to the goal, where there are any.
    """

    observations: list[NDArray[np.float32]]
    actions: list[int]
    success: bool
    cause: str
    frames: list[Frame] = field(default_factory=list)
    trail: list[tuple[float, float]] = field(default_factory=list)
    estimates: list[float] = field(default_factory=list)


def open_env(env_id: str, **options: Any) -> Env:
    """Make a registered environment; `module:ID` imports the module first, also from the working directory."""
    search_working_directory()
    try:
        env: Env = gymnasium.make(env_id, **options)
    except UserError:
        raise
    except Exception as error:  # whatever a user's environment raises, the message names it
        raise WorldError(
            f"the environment {env_id} cannot be made: {type(error).__name__}: {error}; "
            "name one that is registered, as ID or module:ID"
        ) from error
    return env


def check_env(env: Env, wanted: Spaces) -> None:
    """Refuse an environment whose observations, goals or actions do not fit the data."""
    space, actions = env.observation_space, env.action_space
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    if not isinstance(actions, spaces.Discrete) or actions.start != 0:
        raise WorldError(f"{name}: the action space must be Discrete from 0, but is {actions}")
    if actions.n != wanted.num_actions:
        raise WorldError(f"{name} has {actions.n} actions, but the data has {wanted.num_actions}")
    if not isinstance(space, spaces.Dict) or not {"observation", "desired_goal"} <= set(space.keys()):
        raise WorldError(f"{name}: observations must be a Dict with observation and desired_goal, but are {space}")
    for key in ("observation", "desired_goal"):
        size = int(np.prod(space[key].shape or ()))
        if size != wanted.observation_dim:
            raise WorldError(
                f"{name}: {key} has dimension {size}, but the data's observations have {wanted.observation_dim}; "
                "goals must be states, given as observations"
            )


def play(
    env: Env,
    policy: Policy,
    max_steps: int = MAX_STEPS,
    render: bool = False,
    estimate: Estimate | None = None,
    **reset: Any,
) -> Episode:
    """One episode, with frames if asked for; `reset` goes to env.reset."""
    observation, info = env.reset(**reset)
    path = [_flat(observation, "observation")]
    actions: list[int] = []
    goal = _flat(observation, "desired_goal")
    frames, trail = ([_frame(env)], _position(env)) if render else ([], [])
    success = terminated = truncated = False
    while not (success or terminated or truncated) and len(actions) < max_steps:
        actions.append(policy.act(path[-1], _flat(observation, "desired_goal")))
        observation, _, terminated, truncated, info = env.step(actions[-1])
        success = bool(info.get("is_success", info.get("success", terminated)))
        path.append(_flat(observation, "observation"))
        if render:
            frames.append(_frame(env))
            trail += _position(env)
    cause = "" if success else "ended" if terminated else _cause(path) if policy.deterministic else "cap"
    estimates = [] if estimate is None else [0.0 if np.array_equal(row, goal) else estimate(row, goal) for row in path]
    return Episode(path, actions, success, cause, frames, trail, estimates)


def estimator(agent: Agent | None, steps: Steps | None, observations: NDArray[np.float32]) -> Estimate | None:
    """The estimates of an agent, or of a table of steps between `observations`, where NaN stands for other ones."""
    if agent is not None and agent.learns == "distances":
        return lambda row, goal: float(agent.steps_to_goal(row, goal).min()) + 1
    if steps is None:
        return None
    distances = steps.min(-1) + 1
    ids = {row.tobytes(): state for state, row in enumerate(as_rows(observations))}

    def estimate(row: NDArray[np.float32], goal: NDArray[np.float32]) -> float:
        state, target = ids.get(row.tobytes()), ids.get(goal.tobytes())
        return math.nan if state is None or target is None else float(distances[state, target])

    return estimate


def _flat(observation: dict[str, Any], key: str) -> NDArray[np.float32]:
    return as_rows(observation[key]).ravel()


def _frame(env: Env) -> Frame:
    return np.asarray(env.render(), np.uint8)


def _position(env: Env) -> list[tuple[float, float]]:
    """The middle of the agent's cell, as fractions of the frame; empty where the environment is not MiniGrid's."""
    world: Any = env.unwrapped
    if not all(hasattr(world, name) for name in ("agent_pos", "width", "height")):
        return []
    x, y = world.agent_pos
    return [((x + 0.5) / world.width, (y + 0.5) / world.height)]


def _cause(path: list[NDArray[np.float32]]) -> str:
    *before, last = (row.tobytes() for row in path)
    if before[-1] == last:
        return "blocked"
    return "loop" if last in before else "cap"


def play_tasks(layout: Layout, policy: Policy, starts: Ids, goals: Ids, max_steps: int = MAX_STEPS) -> list[Episode]:
    """Tasks of a layout, one by one, in qrl/OneWayDoors-v0."""
    env = open_env(ENV_ID, layout=layout, max_steps=max_steps)
    tasks = [
        {"start": layout.cells[start], "goal": layout.cells[goal]} for start, goal in zip(starts, goals, strict=True)
    ]
    return [play(env, policy, max_steps, options=task) for task in _progress(tasks)]


def play_seeds(env: Env, policy: Policy, episodes: int, seed: int, max_steps: int = MAX_STEPS) -> list[Episode]:
    """Tasks that an environment draws itself, with seeds derived from `seed`."""
    seeds = np.random.default_rng(seed).integers(2**31, size=episodes).tolist()
    return [play(env, policy, max_steps, seed=episode_seed) for episode_seed in _progress(seeds)]


def _progress(tasks: Sequence[Any]) -> "tqdm[Any]":
    return tqdm(tasks, desc="planning", unit=" episodes", disable=None, leave=False)


def outcome(episodes: Sequence[Episode]) -> Outcome:
    return Outcome(
        np.array([episode.success for episode in episodes]),
        np.array([len(episode.actions) for episode in episodes]),
        np.array([episode.cause for episode in episodes]),
    )
