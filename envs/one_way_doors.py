"""The goal-conditioned environment qrl/OneWayDoors-v0: a MiniGrid world of rooms connected by one-way doors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from minigrid.core.constants import COLORS, IDX_TO_OBJECT, OBJECT_TO_IDX
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Goal, Wall, WorldObj
from minigrid.minigrid_env import MiniGridEnv
from minigrid.utils.rendering import fill_coords, point_in_rect, point_in_triangle, rotate_fn
from numpy.typing import NDArray

from qrl.common.errors import UserError
from qrl.envs.errors import LayoutError
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import MOVES, OBSERVATION_DIM, Layout, load_layout, opposite

Observation = dict[str, NDArray[np.float32]]

_DOOR_TYPE = "one_way_door"


def minigrid_direction(action: int) -> int:
    """MiniGrid numbers directions clockwise from right, actions are numbered clockwise from up."""
    return (action - 1) % len(MOVES)


class OneWayDoor(WorldObj):
    """A cell that blocks moves against its arrow, both into and out of it; green if it is the goal."""

    def __init__(self, heading: int, is_goal: bool = False) -> None:
        # WorldObj accepts only types in this table, and tiles are cached by their index in it.
        if _DOOR_TYPE not in OBJECT_TO_IDX:
            OBJECT_TO_IDX[_DOOR_TYPE] = index = max(OBJECT_TO_IDX.values()) + 1
            IDX_TO_OBJECT[index] = _DOOR_TYPE
        super().__init__(_DOOR_TYPE, "green" if is_goal else "yellow")
        self.heading = heading

    def can_overlap(self) -> bool:
        return True

    def blocks(self, action: int) -> bool:
        return action == opposite(self.heading)

    def encode(self) -> tuple[int, int, int]:
        kind, color, _ = super().encode()
        return kind, color, self.heading

    def render(self, r: NDArray[np.uint8]) -> None:
        """A dark arrow that fills a colored tile, legible at 16 pixels."""
        fill_coords(r, point_in_rect(0, 1, 0, 1), COLORS[self.color])
        theta = 0.5 * np.pi * minigrid_direction(self.heading)
        for shape in (point_in_rect(0.1, 0.5, 0.38, 0.62), point_in_triangle((0.45, 0.12), (0.92, 0.5), (0.45, 0.88))):
            fill_coords(r, rotate_fn(shape, cx=0.5, cy=0.5, theta=theta), (30, 30, 60))


def _mission() -> str:
    return "reach the goal"


class OneWayDoorsEnv(MiniGridEnv):
    """Reach a goal cell through one-way doors, with reward -1 per step and 0 on reaching the goal.

    `layout`: a built-in name, the path of a text file, the text itself or a `Layout` (see `qrl.envs.layout`).
    Actions: 0 up, 1 right, 2 down, 3 left. Observations: a goal environment's Dict of rows of `Layout.observations`.
    `reset(options={"start": (x, y), "goal": (x, y)})` fixes the start, the goal or both; the rest is sampled.
    """

    def __init__(
        self,
        layout: str | Path | Layout = "six-rooms",
        max_steps: int = 200,
        render_mode: str | None = None,
        tile_size: int = 32,
    ) -> None:
        if max_steps < 1:
            raise UserError(f"max_steps: must be at least 1 (got {max_steps})")
        self.layout = load_layout(layout)
        self.truth = ground_truth(self.layout)
        self.truth.check_tasks()
        super().__init__(
            mission_space=MissionSpace(mission_func=_mission),
            width=self.layout.width,
            height=self.layout.height,
            max_steps=max_steps,
            render_mode=render_mode,
            highlight=False,  # fully observable, so there is no field of view to show
            tile_size=tile_size,
        )
        self.action_space = spaces.Discrete(len(MOVES))
        box = spaces.Box(-1.0, 1.0, (OBSERVATION_DIM,), np.float32)
        self.observation_space = spaces.Dict({"observation": box, "achieved_goal": box, "desired_goal": box})
        self.goal_pos = (-1, -1)  # until the first reset

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        # Not MiniGrid's reset, which would generate the grid before the task is known.
        gymnasium.Env.reset(self, seed=seed)
        start, goal = self._choose_task(options or {})
        self.agent_pos = tuple(self.layout.cells[start].tolist())
        self.agent_dir = 0
        self.goal_pos = tuple(self.layout.cells[goal].tolist())
        self.step_count = 0
        self._gen_grid(self.width, self.height)
        if self.render_mode == "human":
            self.render()
        return self.gen_obs(), self._info()

    def _choose_task(self, options: dict[str, Any]) -> tuple[int, int]:
        unknown = set(options) - {"start", "goal"}
        if unknown:
            raise UserError(f"reset options: unknown keys {sorted(unknown)}; use 'start' and 'goal'")
        fixed = {key: self._parse_cell(key, position) for key, position in options.items()}
        if not fixed:
            task = self.truth.sample_tasks(self.np_random, 1)
            return int(task[0][0]), int(task[1][0])
        start, goal = fixed.get("start"), fixed.get("goal")
        if start is None:
            starts, distances = self.layout.starts, self.truth.distances_to(np.array([goal]))[:, 0]
            start = self._sample("start", starts[np.isfinite(distances[starts]) & (starts != goal)])
        if goal is None:
            goals = self.truth.goals_from(start)
            goal = self._sample("goal", goals[goals != start])
        if start == goal:
            raise UserError(f"reset options: start and goal are both {options['start']}; choose different cells")
        return start, goal

    def _parse_cell(self, key: str, position: Sequence[int]) -> int:
        try:
            x, y = (int(value) for value in position)
        except (TypeError, ValueError):
            raise UserError(f"reset options: {key} must be a cell (x, y), not {position!r}") from None
        try:
            return self.layout.state_at(x, y)
        except LayoutError as error:
            raise UserError(f"reset options: {key}: {error}") from None

    def _sample(self, key: str, states: NDArray[np.int64]) -> int:
        if not len(states):
            raise UserError(f"reset options: no {key} to sample, as the goal would be unreachable; choose another cell")
        return int(self.np_random.choice(states))

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(width, height)
        wall = Wall()
        for y, x in np.argwhere(self.layout.grid == "#").tolist():
            self.grid.set(x, y, wall)
        self.grid.set(*self.goal_pos, Goal())
        for door in self.layout.doors:
            position = tuple(self.layout.cells[door].tolist())
            self.grid.set(*position, OneWayDoor(int(self.layout.headings[door]), position == self.goal_pos))

    def _check_reset(self) -> None:
        if self.goal_pos == (-1, -1):
            raise ResetNeeded("call env.reset() before env.step() and env.render()")

    def render(self) -> Any:
        self._check_reset()
        return super().render()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._check_reset()
        if not self.action_space.contains(action):
            raise UserError(f"action: must be one of 0, 1, 2, 3 (got {action!r})")
        action = int(action)
        self.step_count += 1
        self.agent_dir = minigrid_direction(action)
        x, y = self.agent_pos
        target = (x + int(MOVES[action, 0]), y + int(MOVES[action, 1]))
        if not self._blocked(self.grid.get(x, y), self.grid.get(*target), action):
            self.agent_pos = target
        if self.render_mode == "human":
            self.render()
        observation = self.gen_obs()
        info = self._info()
        task = (observation["achieved_goal"], observation["desired_goal"], info)
        return (
            observation,
            float(self.compute_reward(*task)),
            bool(self.compute_terminated(*task)),
            bool(self.compute_truncated(*task)),
            info,
        )

    @staticmethod
    def _blocked(origin: WorldObj | None, target: WorldObj | None, action: int) -> bool:
        if target is not None and not target.can_overlap():
            return True
        return any(isinstance(cell, OneWayDoor) and cell.blocks(action) for cell in (origin, target))

    def gen_obs(self) -> Observation:
        table = self.layout.observations
        state, goal = self._state_at(self.agent_pos), self._state_at(self.goal_pos)
        return {
            "observation": table[state].copy(),
            "achieved_goal": table[state].copy(),
            "desired_goal": table[goal].copy(),
        }

    def _state_at(self, position: tuple[int, int]) -> int:
        x, y = position
        return int(self.layout.state_ids[y, x])

    def _info(self) -> dict[str, Any]:
        state, goal = self._state_at(self.agent_pos), self._state_at(self.goal_pos)
        success = state == goal
        return {"is_success": success, "success": success, "state": state, "goal": goal, "steps": self.step_count}

    # The interface of goal environments, for one observation (18,) or a batch (..., 18).

    def compute_reward(self, achieved_goal: NDArray[Any], desired_goal: NDArray[Any], info: Any) -> NDArray[np.float32]:
        """0 on the goal, -1 elsewhere."""
        return np.where(self.compute_terminated(achieved_goal, desired_goal, info), np.float32(0), np.float32(-1))

    def compute_terminated(
        self, achieved_goal: NDArray[Any], desired_goal: NDArray[Any], info: Any
    ) -> NDArray[np.bool_]:
        """Whether the goal is reached."""
        reached: NDArray[np.bool_] = np.equal(achieved_goal, desired_goal).all(-1)
        return reached

    def compute_truncated(
        self, achieved_goal: NDArray[Any], desired_goal: NDArray[Any], info: Any
    ) -> NDArray[np.bool_]:
        """Whether the episode ends at the step limit without reaching the goal.

        `info`: one info, a sequence of infos, or the dict of arrays returned by vector environments.
        """
        steps = info["steps"] if isinstance(info, Mapping) else [step_info["steps"] for step_info in info]
        terminated = self.compute_terminated(achieved_goal, desired_goal, info)
        return np.logical_and(np.greater_equal(steps, self.max_steps), ~terminated)
