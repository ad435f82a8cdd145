"""Slip: with some probability another action happens, for any world."""

from dataclasses import replace

import numpy as np
from pydantic import Field

from qrl.envs.world import World

SLIP = Field(0, ge=0, lt=1, description="probability that another action happens, each of them equally likely")
DISCOUNT = Field(0.95, gt=0, lt=1, description="discount of the exact distances, if anything is random")


def with_slip(world: World, slip: float) -> World:
    """The world in which an action is replaced by one of the others with probability `slip`."""
    actions = world.num_actions
    if slip == 0 or actions == 1:
        return world
    outcomes = world.transitions.reshape(world.num_states, 1, -1)
    own = np.ones(outcomes.shape) if world.deterministic else world.probabilities.reshape(outcomes.shape)
    happens = np.full((actions, actions), slip / (actions - 1))
    np.fill_diagonal(happens, 1 - slip)
    weights = np.repeat(happens, outcomes.shape[2] // actions, axis=1)  # of the outcomes of all actions
    return replace(
        world,
        name=f"{world.name} with slip {slip:g}",
        transitions=np.repeat(outcomes, actions, axis=1),
        probabilities=own * weights,
    )
