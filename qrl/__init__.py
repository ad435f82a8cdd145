"""Offline goal-conditioned reinforcement learning with quasimetric Q-models, scored against exact distances."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qrl.agents.api import collect, evaluate, load, train
    from qrl.agents.evaluation.metrics import register_metric
    from qrl.agents.learners.registry import list_learners, register_learner
    from qrl.agents.runs.run import Run
    from qrl.agents.runs.settings import TrainSettings
    from qrl.envs.world import World
    from qrl.envs.worlds.registry import list_worlds, make_world, register_world
    from qrl.registry import list_q_models, make_q_model, register_head, register_q_model
    from qrl.spec import QModelSpec

__version__ = "0.2.0"
__all__ = [
    "QModelSpec",
    "Run",
    "TrainSettings",
    "World",
    "__version__",
    "collect",
    "evaluate",
    "list_learners",
    "list_q_models",
    "list_worlds",
    "load",
    "make_q_model",
    "make_world",
    "register_head",
    "register_learner",
    "register_metric",
    "register_q_model",
    "register_world",
    "train",
]

_HOMES = {
    "qrl.agents.api": ("collect", "evaluate", "load", "train"),
    "qrl.agents.evaluation.metrics": ("register_metric",),
    "qrl.agents.learners.registry": ("list_learners", "register_learner"),
    "qrl.agents.runs.run": ("Run",),
    "qrl.agents.runs.settings": ("TrainSettings",),
    "qrl.envs.world": ("World",),
    "qrl.envs.worlds.registry": ("list_worlds", "make_world", "register_world"),
    "qrl.registry": ("list_q_models", "make_q_model", "register_head", "register_q_model"),
    "qrl.spec": ("QModelSpec",),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that importing qrl is instant and does not import torch."""
    for module, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(module), name)
            return value
    raise AttributeError(f"module 'qrl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
