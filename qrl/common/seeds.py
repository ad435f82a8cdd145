"""Independent seeds, one per purpose."""

import zlib

import numpy as np


def derived_seed(seed: int, purpose: str) -> int:
    """A seed that follows from `seed` and the purpose alone."""
    sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()),))
    return int(sequence.generate_state(1, np.uint64)[0])
