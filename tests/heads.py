"""Every registered head at a small size, for tests over the registry."""

import torch
from torch import Tensor

from qrl.heads import Head
from qrl.q_models import LatentQModel
from qrl.registry import find, list_q_models
from qrl.spec import QModelSpec

INPUT_SIZE = 16
HEAD_NAMES = [name for name in list_q_models() if find(name).is_head]


def make_head(name: str, input_size: int = INPUT_SIZE, seed: int = 0, noise: float = 0.3, **params: int) -> Head:
    """A head in float64 with perturbed initial parameters, so that no property holds by coincidence."""
    torch.manual_seed(seed)
    spec = QModelSpec(observation_dim=2, num_actions=1, discount=0.9)
    model = find(name).make(spec, {"latent_size": input_size, "hidden_sizes": (), **params}).double()
    assert isinstance(model, LatentQModel)
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    model.project_()
    return model.head


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
