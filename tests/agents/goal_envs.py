"""A goal environment that knows nothing of layouts, as a user's own would be: `tests.agents.goal_envs:Ring-v0`."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Ring(gymnasium.Env[Any, Any]):
    """Places on a circle, each described by its (cos, sin); 0 stays, 1 walks on, 2 jumps into a hole that ends it."""

    def __init__(self, places: int = 6, dim: int = 2, num_actions: int = 3, tell: str | None = "is_success") -> None:
        box = spaces.Box(-1.0, 1.0, (dim,), np.float32)
        self.observation_space = spaces.Dict({"observation": box, "achieved_goal": box, "desired_goal": box})
        self.action_space = spaces.Discrete(num_actions)
        self.places, self.dim, self.tell = places, dim, tell
        self.render_mode = None

    def describe(self, place: int) -> np.ndarray:
        angle = 2 * np.pi * place / self.places
        return np.resize(np.array([np.cos(angle), np.sin(angle)], np.float32), self.dim)

    def _observe(self) -> dict[str, np.ndarray]:
        here = self.describe(self.place)
        return {"observation": here, "achieved_goal": here, "desired_goal": self.describe(self.goal)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(self.places))
        self.goal = (self.place + 1 + int(self.np_random.integers(self.places - 1))) % self.places
        return self._observe(), {}

    def step(self, action: int) -> Any:
        self.place = (self.place + (action == 1)) % self.places
        success = self.place == self.goal and action != 2
        info = {} if self.tell is None else {self.tell: success}
        return self._observe(), -1.0, success or action == 2, False, info


gymnasium.register("Ring-v0", entry_point=f"{__name__}:Ring")
