"""What samplers share: one generator for all randomness, whose state can be saved."""

from typing import Any

import numpy as np


class Sampler:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def state_dict(self) -> dict[str, Any]:
        """The generator's state as plain JSON values."""
        return dict(self.rng.bit_generator.state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng.bit_generator.state = state
