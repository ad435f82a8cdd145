"""Poisson quasimetric embeddings: the probability that Poisson counts of u exceed those of v."""

import math
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name
from qrl.heads.base import Head
from qrl.heads.deep_linear import DeepLinear, Mode, make_mixture
from qrl.heads.poisson_race import poisson_race
from qrl.heads.sizes import split
from qrl.registry import register_head
from qrl.spec import MAX_SIZE

MAX_RAW_VARIANCE = 10.0  # bounds the logarithm of the variance
Processes = Annotated[int, Field(ge=1, le=MAX_SIZE, description="Poisson processes in each component (l)")]


class _PQE(Head):
    """Components q_i(u, v) = 1 - prod_j P(N_j(u) <= N_j(v)) in [0, 1), mixed by learned weights."""

    guaranteed_quasimetric = True

    def __init__(self, input_size: int, dim_per_component: int, mode: str, discount: float) -> None:
        super().__init__(input_size)
        self.num_components, self.dim_per_component = split(input_size, dim_per_component)
        self.mode = mode
        self.reduction = make_mixture(mode, self.num_components, discount)

    def _by_component(self, values: Tensor) -> Tensor:
        grouped: Tensor = values.unflatten(-1, (self.num_components, self.dim_per_component))
        return grouped

    def extra_repr(self) -> str:
        return (
            f"input_size={self.input_size}, {self.num_components} components of {self.dim_per_component} processes, "
            f"mode={self.mode}"
        )


@register_head("pqe-lh", family="PQE")
class PQELH(_PQE):
    """Lebesgue measure and half-lines: q_i = 1 - exp(-sum_j (u_ij - v_ij)^+), by default with the mean over j.

    Positive where u > v, the opposite of IQE.
    """

    def __init__(
        self,
        input_size: int,
        dim_per_component: Processes = 4,
        mode: Mode = "discounted",
        normalize: Annotated[bool, Field(description="average over processes; the paper sums")] = True,
        discount: float = 0.95,
    ) -> None:
        super().__init__(input_size, dim_per_component, mode, discount)
        self.normalize = normalize

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        excess = self._by_component((u - v).relu_())
        exponent = excess.sum(-1).mul_(-1 / self.dim_per_component if self.normalize else -1)
        # In place if no gradient needs it.
        return -exponent.expm1() if exponent.requires_grad else exponent.expm1_().neg_()


@register_head("pqe-gg", family="PQE")
class PQEGG(_PQE):
    """Gaussian measure and Gaussian shapes: q_i = 1 - prod_j P(Poisson(mu_j(u - v)) <= Poisson(mu_j(v - u))).

    The set of u is the region below the density of N(u, 1), measured by N(0, s^2) along the axis. The rates are the
    masses mu of the two set differences, scaled by non-negative weights (`scale`) and divided by l.
    """

    def __init__(
        self,
        input_size: int,
        dim_per_component: Processes = 4,
        mode: Mode = "discounted",
        scale: Annotated[str, Field(description="weights between processes: full or diag")] = "full",
        discount: float = 0.95,
    ) -> None:
        super().__init__(input_size, dim_per_component, mode, discount)
        self.raw_variance = nn.Parameter(torch.zeros(input_size))
        self.scale: nn.Module
        if scale == "full":
            self.scale = _FullScale(input_size)
        elif scale == "diag":
            self.scale = _DiagonalScale(input_size)
        else:
            raise ConfigError(unknown_name("scale", scale, ["full", "diag"]))

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        only_u, only_v = (self.scale(mass) / self.dim_per_component for mass in self.set_differences(u, v))
        greater, less_equal = poisson_race(only_u, only_v)
        # ln P(X <= Y) from the smaller side; the clamps keep the gradient of the other side finite.
        log_le = torch.where(
            greater < 0.5,
            torch.log1p(-greater.clamp(max=0.5)),
            less_equal.clamp(min=torch.finfo(less_equal.dtype).tiny).log(),
        )
        return -torch.expm1(self._by_component(log_le).sum(-1))

    def set_differences(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The masses of u without v and of v without u, both exactly 0 where u = v.

        The densities of N(u, 1) and N(v, 1) cross once, at the midpoint. Let T(x) be the total mass of x and F(x) the
        fraction of it left of the crossing. Then u without v has the mass T(u) F(u) - T(v) F(v) if u <= v; if u > v,
        the same holds with the fractions right of the crossing.
        """
        variance = self.raw_variance.clamp(-MAX_RAW_VARIANCE, MAX_RAW_VARIANCE).exp()
        spread = 1 + variance
        shrink, deviation = variance / spread, (variance / spread).sqrt()
        crossing = (u + v) / 2
        side = torch.where(u <= v, 1.0, -1.0).to(u.dtype)  # 1: the part of u lies left of the crossing
        normal = math.sqrt(0.5) / deviation

        def mass(x: Tensor, direction: Tensor) -> Tensor:
            """The mass of x on one side of the crossing."""
            total = torch.exp(-x.square() / (2 * spread)) / (2 * math.pi * spread).sqrt()
            return total * 0.5 * torch.erfc(-direction * (crossing - shrink * x) * normal)

        # Rounding may give a tiny negative mass; relu also has zero gradient at the exact zeros of u = v.
        return F.relu(mass(u, side) - mass(v, side)), F.relu(mass(v, -side) - mass(u, -side))


class _FullScale(nn.Module):
    """Non-negative weights between all processes, C * C for a deep linear net C."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.net = DeepLinear(size, size)

    def forward(self, masses: Tensor) -> Tensor:
        return F.linear(masses, self.net.matrix().square())


class _DiagonalScale(nn.Module):
    """One non-negative weight per process, the square of a parameter that is initially 1."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.roots = nn.Parameter(torch.ones(size))

    def forward(self, masses: Tensor) -> Tensor:
        return masses * self.roots.square()
