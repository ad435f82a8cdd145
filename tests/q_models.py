"""Small Q-models for tests."""

import torch

from qrl import QModelSpec, make_q_model
from qrl.q_models import QModel

SPEC = QModelSpec(observation_dim=3, num_actions=4, discount=0.95)


def small_model(name: str, **params: object) -> QModel:
    torch.manual_seed(0)
    return make_q_model(name, SPEC, hidden_sizes=(8,), **params).eval()
