"""What a Q-model needs to know about world and task."""

from dataclasses import dataclass

from qrl.common.errors import ConfigError
from qrl.common.limits import MAX_ACTIONS, MAX_OBSERVATION_DIM

MAX_SIZE = 2**16  # of every layer and latent: more is a mistake, and may exceed all memory
MAX_LAYERS = 64


@dataclass(frozen=True)
class QModelSpec:
    """`discount` is gamma in D = gamma**d, the discounted distance."""

    observation_dim: int
    num_actions: int
    discount: float

    def __post_init__(self) -> None:
        for name, most in (("observation_dim", MAX_OBSERVATION_DIM), ("num_actions", MAX_ACTIONS)):
            if not 1 <= getattr(self, name) <= most:
                raise ConfigError(f"{name}: must be from 1 to {most:,} (got {getattr(self, name)})")
        if not 0 < self.discount < 1:
            raise ConfigError(f"discount: must lie strictly between 0 and 1 (got {self.discount})")
