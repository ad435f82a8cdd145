"""One task of an evaluation, to be looked at: which states it has, and an episode with frames and estimates."""

from typing import Any

import numpy as np

from qrl.agents.evaluation.evaluator import Evaluator, Subject
from qrl.agents.planning.rollouts import Episode, estimator, open_env, play
from qrl.envs.errors import WorldError
from qrl.envs.registration import ENV_ID

GridCell = tuple[int, int]  # (x, y)


def goal_state(evaluator: Evaluator, goal: GridCell | None = None) -> int:
    """The state of a goal cell; by default the goal with the median mean distance from all states."""
    truth = evaluator.truth
    if truth is None:
        raise WorldError("a goal cell needs a world, and the dataset has none")
    if goal is not None:
        return truth.world.state_at(*goal)
    goals = truth.world.goals
    distances = truth.distances_to(goals)
    mean = np.where(np.isfinite(distances), distances, 0).sum(0) / np.isfinite(distances).sum(0)
    return int(goals[np.argsort(mean, kind="stable")[len(mean) // 2]])


def task_states(evaluator: Evaluator, start: GridCell | None = None, goal: GridCell | None = None) -> tuple[int, int]:
    """Start and goal of a task in the world; by default the start is the one farthest from the goal."""
    target = goal_state(evaluator, goal)
    assert evaluator.truth is not None
    world = evaluator.truth.world
    if start is None:
        distances = evaluator.truth.distances_to(np.array([target]))[world.starts, 0]
        state = int(world.starts[np.where(np.isfinite(distances), distances, -1).argmax()])
    else:
        state = world.state_at(*start)
    if state == target:
        place = f"state {state}" if world.cells is None else f"cell {tuple(world.cells[state].tolist())}"
        raise WorldError(f"start and goal are both the {place}; choose another")
    return state, target


def check_play(evaluator: Evaluator, start: GridCell | None = None, goal: GridCell | None = None) -> None:
    """Refuse what `play_task` cannot do, before any work is done."""
    if evaluator.env is not None:
        if start is not None or goal is not None:
            raise WorldError("an environment of your own draws its tasks itself: leave out start and goal")
        if evaluator.env.render_mode != "rgb_array":
            raise WorldError("the environment renders no frames: make it with render_mode='rgb_array'")
    elif evaluator.truth is None:
        raise WorldError("there is no world to show; evaluate-planning --env plans in an environment of yours")
    elif not evaluator.in_env:
        raise WorldError(f"{evaluator.truth.world.name} has no environment that renders frames: leave out the GIF")
    else:
        task_states(evaluator, start, goal)


def play_task(
    evaluator: Evaluator, subject: Subject, start: GridCell | None = None, goal: GridCell | None = None
) -> Episode:
    """An episode in the environment, with frames and estimates."""
    check_play(evaluator, start, goal)
    estimate = estimator(subject.agent, subject.steps, evaluator.observations)
    show: dict[str, Any] = {"render": True, "estimate": estimate}
    if evaluator.env is not None:
        return play(evaluator.env, subject.policy, evaluator.max_steps, seed=evaluator.seed, **show)
    state, target = task_states(evaluator, start, goal)
    assert evaluator.truth is not None
    layout = evaluator.truth.layout
    env = open_env(ENV_ID, layout=layout, max_steps=evaluator.max_steps, render_mode="rgb_array", tile_size=20)
    options = {"start": layout.cells[state], "goal": layout.cells[target]}
    return play(env, subject.policy, evaluator.max_steps, options=options, **show)
