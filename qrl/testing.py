"""Public contract checks for authors of plugins; qrl's tests run them over the registries."""

from typing import Any

from qrl.checks import SPEC as SPEC
from qrl.checks import check_q_model as check_q_model


def check_learner(name: str, **settings: Any) -> None:
    """Raise a `ContractError` that says which point of the contract the learner breaks.

    `settings` are keys of the learner. It is trained for some steps on a tiny world.
    """
    from qrl.agents.learners.checks import check_learner

    check_learner(name, **settings)


def check_world(name: str, **settings: Any) -> None:
    """Raise a `ContractError` that says which point of the contract the world breaks.

    `settings` are keys of the world. Some trajectories are collected in it.
    """
    from qrl.envs.worlds.checks import check_world

    check_world(name, **settings)
