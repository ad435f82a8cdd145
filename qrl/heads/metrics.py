"""Metric embeddings: symmetric, and thus unable to represent one-way doors."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qrl.heads.base import Head
from qrl.heads.reductions import Sum
from qrl.registry import register_head


def _inverse_softplus(value: float) -> float:
    return value + math.log(-math.expm1(-value))


def angle(u: Tensor, v: Tensor) -> Tensor:
    """The angle between latents, 2 atan2(|u^ - v^|, |u^ + v^|): accurate for small angles, unlike acos."""
    u, v = (latent / torch.linalg.vector_norm(latent, dim=-1, keepdim=True).clamp_min(1e-12) for latent in (u, v))
    difference = torch.linalg.vector_norm(u - v, dim=-1)
    return 2 * torch.atan2(difference, torch.linalg.vector_norm(u + v, dim=-1))


class _Metric(Head):
    """One component, the distance itself: `between` skips transform and sum, which would take much of the time."""

    guaranteed_quasimetric = True

    def __init__(self, input_size: int) -> None:
        super().__init__(input_size)
        self.reduction = Sum()

    def distance(self, u: Tensor, v: Tensor) -> Tensor:
        """(...): d(u, v)"""
        raise NotImplementedError  # pragma: no cover

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return self.distance(u, v).unsqueeze(-1)

    def between(self, u: Tensor, v: Tensor) -> Tensor:
        return self.distance(u, v)


@register_head("euclidean", family="metric")
class Euclidean(_Metric):
    """|u - v|_2"""

    def distance(self, u: Tensor, v: Tensor) -> Tensor:
        norm: Tensor = torch.linalg.vector_norm(u - v, dim=-1)
        return norm


@register_head("l1", family="metric")
class L1(_Metric):
    """|u - v|_1"""

    def distance(self, u: Tensor, v: Tensor) -> Tensor:
        difference = u - v
        # In place if no gradient needs the difference.
        return (difference.abs() if difference.requires_grad else difference.abs_()).sum(-1)


@register_head("spherical", family="metric")
class Spherical(_Metric):
    """s * angle(u, v) with a learned scale s = softplus(raw), initially 1."""

    def __init__(self, input_size: int) -> None:
        super().__init__(input_size)
        self.raw_scale = nn.Parameter(torch.tensor(_inverse_softplus(1.0)))

    def distance(self, u: Tensor, v: Tensor) -> Tensor:
        return F.softplus(self.raw_scale) * angle(u, v)


@register_head("metric-mixture", family="metric")
class MetricMixture(Head):
    """w1 |u - v|_2 + w2 |u - v|_1 + w3 angle(u, v) with learned weights w = softplus(raw).

    Initially w is 1, except 1 / sqrt(n) for the l1 distance, which is about sqrt(n) times the Euclidean one.
    """

    guaranteed_quasimetric = True

    def __init__(self, input_size: int) -> None:
        super().__init__(input_size)
        self.reduction = Sum()
        weights = [1.0, 1 / math.sqrt(input_size), 1.0]
        self.raw_weights = nn.Parameter(torch.tensor([_inverse_softplus(weight) for weight in weights]))

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        angles = angle(u, v)  # first, so that its large intermediates are freed before the difference is allocated
        difference = u - v
        euclidean = torch.linalg.vector_norm(difference, dim=-1)
        parts = torch.stack([euclidean, difference.abs().sum(-1), angles], -1)
        return F.softplus(self.raw_weights) * parts
