"""Reductions of (..., k) components to a distance (...); each preserves quasimetrics."""

import torch
from torch import Tensor, nn

from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name


class Sum(nn.Module):
    def forward(self, components: Tensor) -> Tensor:
        return components.sum(-1)


class Mean(nn.Module):
    def forward(self, components: Tensor) -> Tensor:
        return components.mean(-1)


class Max(nn.Module):
    def forward(self, components: Tensor) -> Tensor:
        return components.amax(-1)


class MaxMean(nn.Module):
    """alpha * max + (1 - alpha) * mean with a learned alpha = sigmoid(a); a is initially -1."""

    def __init__(self) -> None:
        super().__init__()
        self.raw_alpha = nn.Parameter(torch.tensor(-1.0))

    def forward(self, components: Tensor) -> Tensor:
        return torch.lerp(components.mean(-1), components.amax(-1), self.raw_alpha.sigmoid())


REDUCTIONS: dict[str, type[nn.Module]] = {"sum": Sum, "mean": Mean, "max": Max, "maxmean": MaxMean}


def make_reduction(name: str) -> nn.Module:
    if name not in REDUCTIONS:
        raise ConfigError(unknown_name("reduction", name, REDUCTIONS))
    return REDUCTIONS[name]()
