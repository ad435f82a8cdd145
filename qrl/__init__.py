"""Offline goal-conditioned reinforcement learning with quasimetric Q-models, scored against exact distances."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qrl.agents.api import load
    from qrl.registry import list_q_models, make_q_model, register_head, register_q_model
    from qrl.spec import QModelSpec

__version__ = "0.2.0"
__all__ = ["QModelSpec", "__version__", "list_q_models", "load", "make_q_model", "register_head", "register_q_model"]

_HOMES = {
    "QModelSpec": "qrl.spec",
    "list_q_models": "qrl.registry",
    "load": "qrl.agents.api",
    "make_q_model": "qrl.registry",
    "register_head": "qrl.registry",
    "register_q_model": "qrl.registry",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that importing qrl is instant and does not import torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'qrl' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
