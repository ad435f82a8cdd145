"""Quasimetric Q-models for offline goal-conditioned reinforcement learning."""

from qrl.registry import list_q_models, make_q_model, register_head, register_q_model
from qrl.spec import QModelSpec

__all__ = ["QModelSpec", "list_q_models", "make_q_model", "register_head", "register_q_model"]
