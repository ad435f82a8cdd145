"""What a Q-model needs to know about world and task."""

from dataclasses import dataclass

from qrl.common.errors import ConfigError

MAX_SIZE = 2**16  # of every layer and latent: more is a mistake, and may exceed all memory
MAX_LAYERS = 64


@dataclass(frozen=True)
class QModelSpec:
    """`discount` is gamma in D = gamma**d, the discounted distance."""

    observation_dim: int
    num_actions: int
    discount: float

    def __post_init__(self) -> None:
        for name in ("observation_dim", "num_actions"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: must be at least 1 (got {getattr(self, name)})")
        if not 0 < self.discount < 1:
            raise ConfigError(f"discount: must lie strictly between 0 and 1 (got {self.discount})")
