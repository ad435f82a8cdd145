"""A deterministic MiniGrid environment as an exact world."""

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field

from qrl.envs.errors import WorldError
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.world import World
from qrl.envs.worlds.registry import WorldSettings, register_world
from qrl.envs.worlds.slip import DISCOUNT, SLIP, with_slip


class MiniGridSettings(WorldSettings):
    # No module:ID, which would import a module that a dataset names.
    env: str = Field("MiniGrid-DoorKey-5x5-v0", pattern=r"^[\w.+/-]+$", description="ID of the registered environment")
    seed: int = Field(0, ge=0, lt=2**31, description="seed of the first reset, which generates the grid")
    resets: int = Field(1, ge=1, le=10_000, description="number of resets, with the seeds from `seed` on")
    starts: Literal["reset", "all"] = Field(
        "reset", description="starts of tasks: the states after a reset, or all that reach a goal"
    )
    goals: Literal["task", "all"] = Field(
        "task", description="goals of tasks: the states in which the environment's own task succeeds, or all"
    )
    max_states: int = Field(50_000, ge=1, le=1_000_000, description="number of states beyond which it gives up")
    slip: float = SLIP
    discount: float = DISCOUNT

    def bounded(self, states: int) -> Self:
        return self.model_copy(update={"max_states": min(self.max_states, states)})


@register_world("minigrid", MiniGridSettings)
def minigrid_world(settings: MiniGridSettings) -> World:
    """A deterministic MiniGrid environment: all states that its own steps reach from its resets.

    A state is the grid with its doors and boxes, the agent's position and direction, and what it carries. Observations
    are MiniGrid's symbolic encoding of the whole grid, flattened. Where the environment ends an episode, by success or,
    as in lava, by failure, the world stays for good.
    """
    from qrl.envs.worlds.enumeration import Enumeration  # which imports MiniGrid

    states = Enumeration(_open(settings.env), settings.max_states)
    for seed in range(settings.seed, settings.seed + settings.resets):
        states.explore(seed)
    succeeded = np.flatnonzero(states.succeeded)
    goals = succeeded if settings.goals == "task" else np.arange(len(states))
    if not len(goals):
        raise WorldError(f"world minigrid: {settings.env} never succeeds from the reset with seed {settings.seed}")
    world = World(
        settings.env,
        states.observations,
        states.transitions,
        starts=states.starts,
        goals=goals,
        cells=states.cells,
        discount=settings.discount,
    )
    if settings.starts == "all":
        world = _from_everywhere(world)
    return with_slip(world, settings.slip)


def _from_everywhere(world: World) -> World:
    """With all states as starts from which a goal other than themselves can be reached."""
    everywhere = GroundTruth(replace(world, starts=np.arange(world.num_states)))
    return replace(world, starts=everywhere.able_starts)


def _open(env_id: str) -> Any:
    import gymnasium
    import minigrid  # noqa: F401 - registers its environments
    from minigrid.minigrid_env import MiniGridEnv

    try:
        env = gymnasium.make(env_id, disable_env_checker=True).unwrapped
    except Exception as error:  # whatever an environment raises, the message names it
        raise WorldError(
            f"world minigrid: the environment {env_id} cannot be made: {type(error).__name__}: {error}; one of your "
            "own needs to be registered by a module named with --plugin"
        ) from error
    if not isinstance(env, MiniGridEnv):
        raise WorldError(f"world minigrid: {env_id} is not a MiniGrid environment")
    return env
