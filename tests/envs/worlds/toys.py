"""A world that a user might register: a ring, with faults to choose from."""

import itertools
from typing import Literal

import numpy as np
from pydantic import Field

from qrl.envs.world import World
from qrl.envs.worlds.registry import WorldSettings

_counter = itertools.count()


class RingSettings(WorldSettings):
    states: int = Field(6, ge=2, description="number of states")
    fault: Literal["none", "random", "unreachable", "raises", "other type"] = "none"


def ring(settings: RingSettings) -> World:
    """A ring with a step in one direction, and one that stays."""
    states = np.arange(settings.states)
    if settings.fault == "raises":
        raise KeyError("fault")
    if settings.fault == "other type":
        return settings  # type: ignore[return-value]
    goal = 0 if settings.fault == "unreachable" else settings.states - 1
    observations = np.eye(settings.states) + (next(_counter) if settings.fault == "random" else 0)
    step = np.minimum(states + 1, states[-1]) if settings.fault == "unreachable" else (states + 1) % len(states)
    return World("ring", observations, np.stack([states, step], 1), starts=[1], goals=[goal])
