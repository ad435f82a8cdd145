"""What samplers share: generators of randomness, one per purpose, whose states can be saved."""

from typing import Any

import numpy as np

from qrl.common.seeds import derived_seed


class Sampler:
    """`rng` is the generator of the main purpose; `generator` adds others."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self._others: dict[str, np.random.Generator] = {}

    def generator(self, purpose: str) -> np.random.Generator:
        """A generator of its own for a purpose, so that what it draws does not change what others draw."""
        return self._others.setdefault(purpose, np.random.default_rng(derived_seed(self.seed, purpose)))

    def state_dict(self) -> dict[str, Any]:
        """The states of the generators as plain JSON values."""
        others = {purpose: dict(rng.bit_generator.state) for purpose, rng in self._others.items()}
        return {**self.rng.bit_generator.state, **others}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        main = dict(state)
        for purpose, rng in self._others.items():
            rng.bit_generator.state = main.pop(purpose)
        self.rng.bit_generator.state = main
        if self.state_dict() != state:  # a generator takes numbers out of range as it likes
            raise ValueError("the state of its sampler is none of a generator")
