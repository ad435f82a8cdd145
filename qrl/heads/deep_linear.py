"""Weights of PQE mixtures, parametrized as products of matrices, which makes them easier to learn."""

import math
from itertools import pairwise
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name


class DeepLinear(nn.Module):
    """A linear map R^a -> R^b stored as M4 M3 M2 M1 + B, initialized with M_i ~ N(0, 1 / fan_in) and B = 0."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        hidden = max(64, _next_power_of_two(in_features), _next_power_of_two(out_features))
        widths = [in_features, hidden, hidden, hidden, out_features]
        self.factors = nn.ParameterList(
            torch.randn(rows, columns) / math.sqrt(columns) for columns, rows in pairwise(widths)
        )
        self.bias = nn.Parameter(torch.zeros(out_features, in_features))

    def matrix(self) -> Tensor:
        """The collapsed (b, a) matrix, computed once per forward pass."""
        first, *later = self.factors
        product: Tensor = first
        for factor in later:
            product = factor @ product
        return product + self.bias


def _next_power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


class DistanceMixture(nn.Module):
    """d = sum_i alpha_i q_i with alpha = C * C for a deep linear net C; initially the alpha_i sum to about 1."""

    def __init__(self, num_components: int) -> None:
        super().__init__()
        self.net = DeepLinear(num_components, 1)

    def forward(self, components: Tensor) -> Tensor:
        return components @ self.net.matrix().square().squeeze(0)


class DiscountedMixture(nn.Module):
    """D = prod_i sigmoid(beta_i)^q_i as a distance: d = sum_i q_i softplus(-beta_i) / ln(1 / discount).

    The logits beta are the output of a deep linear net, initialized so that D lies in [0.5, 0.75] where all q_i are
    1/2. Summing logarithms instead of multiplying avoids underflow to D = 0.
    """

    def __init__(self, num_components: int, discount: float) -> None:
        super().__init__()
        self.log_discount = math.log(discount)
        self.net = DeepLinear(1, num_components)
        low, high = (-math.log(math.expm1(-2 / num_components * math.log(value))) for value in (0.5, 0.75))
        self._initialize(torch.empty(num_components, 1).uniform_(low, high))

    @torch.no_grad()
    def _initialize(self, logits: Tensor) -> None:
        """Set the logits by changing only the last factor, along the direction of the product of the earlier ones."""
        *earlier, last = self.net.factors
        direction = torch.linalg.multi_dot(list(reversed(earlier)))
        squared = direction.square().sum()
        last += (logits - last @ direction) @ direction.mT / squared

    def forward(self, components: Tensor) -> Tensor:
        weights = F.softplus(-self.net.matrix()).squeeze(-1) / -self.log_discount
        return components @ weights


Mode = Annotated[str, Field(description="discounted (weights learned as discounts) or distance (learned directly)")]


def make_mixture(mode: str, num_components: int, discount: float) -> nn.Module:
    if mode == "discounted":
        return DiscountedMixture(num_components, discount)
    if mode == "distance":
        return DistanceMixture(num_components)
    raise ConfigError(unknown_name("mode", mode, ["discounted", "distance"]))
