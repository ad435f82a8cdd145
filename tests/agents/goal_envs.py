"""A goal environment that knows nothing of layouts, as a user's own would be: `tests.agents.goal_envs:Ring-v0`."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Ring(gymnasium.Env[Any, Any]):
    """States on a circle, observed as (cos, sin). Action 0 stays, 1 moves on, 2 falls into a hole and terminates."""

    def __init__(
        self, states: int = 6, dim: int = 2, num_actions: int = 3, success_key: str | None = "is_success"
    ) -> None:
        box = spaces.Box(-1.0, 1.0, (dim,), np.float32)
        self.observation_space = spaces.Dict({"observation": box, "achieved_goal": box, "desired_goal": box})
        self.action_space = spaces.Discrete(num_actions)
        self.states, self.dim, self.success_key = states, dim, success_key
        self.render_mode = None

    def describe(self, state: int) -> np.ndarray:
        angle = 2 * np.pi * state / self.states
        return np.resize(np.array([np.cos(angle), np.sin(angle)], np.float32), self.dim)

    def _observe(self) -> dict[str, np.ndarray]:
        current = self.describe(self.state)
        return {"observation": current, "achieved_goal": current, "desired_goal": self.describe(self.goal)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.state = int(self.np_random.integers(self.states))
        self.goal = (self.state + 1 + int(self.np_random.integers(self.states - 1))) % self.states
        return self._observe(), {}

    def step(self, action: int) -> Any:
        self.state = (self.state + (action == 1)) % self.states
        success = self.state == self.goal and action != 2
        info = {} if self.success_key is None else {self.success_key: success}
        return self._observe(), -1.0, success or action == 2, False, info


gymnasium.register("Ring-v0", entry_point=f"{__name__}:Ring")
