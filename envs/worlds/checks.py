"""The contract check of worlds; its public name is `qrl.testing.check_world`."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from qrl.common.errors import ContractError, UserError
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.world import World
from qrl.envs.worlds.registry import WorldRegistration, WorldSettings, find_world

_TRAJECTORIES = 20
_GOALS = 20  # to which distances are checked
_TOLERANCE = 1e-3  # in steps: distances of stochastic worlds are rounded

Check = Callable[[WorldRegistration, WorldSettings, World], None]


def check_world(name: str, **settings: Any) -> None:
    registration = find_world(name)
    chosen = registration.settings.from_values({"name": name, **settings}, f"world {name}").resolved()
    world = None
    for check in (_builds, _settings, _tasks, _distances, _collection):
        try:
            if world is None:
                world = registration.build(chosen)
            check(registration, chosen, world)
        except Exception as error:
            reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            title = (check.__doc__ or "").strip().rstrip(".")
            reason = reason.removeprefix(f"world {name}: ")
            raise ContractError(f"world {name} breaks the contract ({title}): {reason}") from error


def _demand(truth: bool, message: str) -> None:
    if not truth:
        raise ContractError(message)


def _builds(registration: WorldRegistration, settings: WorldSettings, world: World) -> None:
    """It is built from its settings, and the same settings build the same world."""
    again = registration.build(settings)
    _demand(again == world, "a second world with the same settings is another one; seed what is random")


def _settings(registration: WorldRegistration, settings: WorldSettings, world: World) -> None:
    """Its settings survive being stored in a dataset."""
    stored = json.loads(json.dumps(settings.params, allow_nan=False))
    _demand(registration.rebuild(stored) == world, f"another world is built from {stored}")


def _tasks(registration: WorldRegistration, settings: WorldSettings, world: World) -> None:
    """Every start reaches a goal."""
    ground_truth(world).check_tasks()


def _distances(registration: WorldRegistration, settings: WorldSettings, world: World) -> None:
    """The distance to a goal is one step more than what the best action leaves."""
    truth: GroundTruth = ground_truth(world)
    goals = world.goals[:: -(-len(world.goals) // _GOALS)]
    distances = truth.distances_to(goals)
    backup = 1 + truth.after_action(distances).min(1)
    backup[goals, np.arange(len(goals))] = 0
    _demand(np.allclose(backup, distances, rtol=0, atol=_TOLERANCE), "the exact distances contradict each other")


def _collection(registration: WorldRegistration, settings: WorldSettings, world: World) -> None:
    """Data collected in it names it, and by optimal actions reaches the goals of a deterministic world."""
    values = {"world": {"name": settings.name, **settings.params}, "trajectories": _TRAJECTORIES, "epsilon": 0}
    max_steps = 10_000 if world.deterministic else 100  # chance may end in a trap
    dataset = collect(CollectorSettings.from_values({**values, "max_steps": max_steps}, "check_world"))
    _demand(dataset.world == world, "its data comes from another world")
    if world.deterministic:
        _demand(bool(dataset.terminated.all()), "optimal actions do not reach their goals")
    if world.deterministic and not world.noisy:  # the states of noisy data are not known
        shortest = ground_truth(world).between(dataset.states[dataset.starts], dataset.goals)
        _demand(bool((dataset.lengths == shortest).all()), "optimal actions take other numbers of steps than expected")
