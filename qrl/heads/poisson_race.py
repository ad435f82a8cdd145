"""The Poisson race: P(X > Y) and P(X <= Y) for X ~ Poisson(mu1) and Y ~ Poisson(mu2), with exact gradients.

With the non-central chi-squared distribution F, P(X > Y) = F(2 mu1; df = 2, nc = 2 mu2). There are two methods:

- scipy: in float64 on the CPU, accurate to about 1e-13 relative to either probability (above a rate of 100, where
  scipy's series are long, quadrature is used);
- quadrature: Gauss-Legendre in s of 2 s exp(-(s - sqrt(mu2))^2) i0e(2 s sqrt(mu2)), in torch on any device. Over
  [0, sqrt(mu1)] the integral is P(X > Y), over [sqrt(mu1), inf) P(X <= Y); the shorter side is integrated.

Both probabilities are returned, because 1 - P loses the digits of the smaller one.
"""

import math

import numpy as np
import torch
from scipy import special
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

_MAX_RATE = 1e30  # finite in float32; a bound that rates reach would violate the triangle inequality
_MAX_SCIPY_RATE = 100.0


def poisson_race(mu1: Tensor, mu2: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
    """(P(X > Y), P(X <= Y)) by `method`: scipy, quadrature or auto.

    auto means scipy for float64 on the CPU and quadrature otherwise.
    """
    mu1, mu2 = torch.broadcast_tensors(mu1.clamp(0, _MAX_RATE), mu2.clamp(0, _MAX_RATE))
    if method == "auto":
        method = "scipy" if mu1.dtype == torch.float64 and mu1.is_cpu else "quadrature"
    greater, less_equal = _PoissonRace.apply(mu1, mu2, method)  # type: ignore[no-untyped-call]
    return greater, less_equal


class _PoissonRace(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, mu1: Tensor, mu2: Tensor, method: str) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(mu1, mu2)
        greater, less_equal = _race(mu1, mu2, method)
        return greater, less_equal

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, greater: Tensor, less_equal: Tensor) -> tuple[Tensor, Tensor, None]:
        """dP(X <= Y)/dmu1 = -P(X = Y) and dP(X <= Y)/dmu2 = P(X = Y + 1)."""
        mu1, mu2 = ctx.saved_tensors  # type: ignore[attr-defined]
        grad = less_equal - greater
        return -grad * probability_equal(mu1, mu2), grad * probability_one_more(mu1, mu2), None


# An operator to torch.compile, which could trace neither scipy nor paths that depend on values.
@torch.library.custom_op("qrl::poisson_race", mutates_args=())
def _race(mu1: Tensor, mu2: Tensor, method: str) -> tuple[Tensor, Tensor]:
    greater, less_equal = _by_scipy(mu1, mu2) if method == "scipy" else _by_quadrature(mu1, mu2)
    return greater.contiguous(), less_equal.contiguous()


@_race.register_fake
def _(mu1: Tensor, mu2: Tensor, method: str) -> tuple[Tensor, Tensor]:
    return mu1.new_empty(mu1.shape), mu1.new_empty(mu1.shape)


def probability_equal(mu1: Tensor, mu2: Tensor) -> Tensor:
    """P(X = Y) = exp(-(sqrt(mu1) - sqrt(mu2))^2) i0e(z), z = 2 sqrt(mu1 mu2)."""
    root1, root2 = mu1.sqrt(), mu2.sqrt()
    probability: Tensor = torch.exp(-(root1 - root2).square()) * torch.special.i0e(2 * root1 * root2)
    return probability


def probability_one_more(mu1: Tensor, mu2: Tensor) -> Tensor:
    """P(X = Y + 1) = mu1 exp(-(sqrt(mu1) - sqrt(mu2))^2) [2 i1e(z) / z], where [...] tends to 1 as z tends to 0."""
    root1, root2 = mu1.sqrt(), mu2.sqrt()
    z = 2 * root1 * root2
    ratio = torch.where(z < 1e-12, 1.0, 2 * torch.special.i1e(z) / z.clamp(min=1e-12))
    return mu1 * torch.exp(-(root1 - root2).square()) * ratio


def _by_scipy(mu1: Tensor, mu2: Tensor) -> tuple[Tensor, Tensor]:
    x, y = mu1.double(), mu2.double()
    small = torch.maximum(x, y) <= _MAX_SCIPY_RATE
    greater, less_equal = torch.empty_like(x), torch.empty_like(x)
    greater[small], less_equal[small] = _by_chndtr(x[small], y[small])
    greater[~small], less_equal[~small] = _by_quadrature(x[~small], y[~small])
    return greater.to(mu1.dtype), less_equal.to(mu1.dtype)


def _by_chndtr(mu1: Tensor, mu2: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the smaller probability directly, with P(X <= Y) = P(Y > X) + P(X = Y)."""
    x, y = mu1.numpy(), mu2.numpy()
    greater = torch.from_numpy(np.asarray(special.chndtr(2 * x, 2, 2 * y)))
    less = torch.from_numpy(np.asarray(special.chndtr(2 * y, 2, 2 * x)))
    return greater, torch.where(mu1 > mu2, less + probability_equal(mu1, mu2), 1 - greater)


def _by_quadrature(mu1: Tensor, mu2: Tensor) -> tuple[Tensor, Tensor]:
    nodes, width = (32, 6.5) if mu1.dtype == torch.float64 else (16, 4.5)  # negligible beyond this width
    root1, root2 = mu1.sqrt(), mu2.sqrt()
    # Integrate below sqrt(mu1), which gives P(X > Y), where that is or may be the smaller side; else the tail above.
    below = (mu1 < mu2) | (mu1 < 1)
    low = torch.where(below, (root1 - width).clamp(min=0), root1)
    high = torch.where(below, root1, root1 + width)
    if mu1.is_cpu:
        # Short intervals need few nodes: 4 up to a length of 0.5 and 6 up to 1 are accurate to 4e-8, 12 to 1e-14.
        few, some = (12, 12) if mu1.dtype == torch.float64 else (4, 6)
        length = high - low
        total = torch.empty_like(mu1)
        # The last group contains everything else, NaN included.
        for chosen, count in ((length <= 0.5, few), ((length > 0.5) & (length <= 1), some), (~(length <= 1), nodes)):
            if chosen.all():  # indexing takes as long as integrating
                total = _integral(low, high, root2, count)
                break
            total[chosen] = _integral(low[chosen], high[chosen], root2[chosen], count)
    else:
        total = _integral(low, high, root2, nodes)
    total = total.clamp(max=1)
    return torch.where(below, total, 1 - total), torch.where(below, 1 - total, total)


def _integral(low: Tensor, high: Tensor, root: Tensor, nodes: int) -> Tensor:
    """The integral of 2 s exp(-(s - root)^2) i0e(2 s root) from low to high."""
    half, middle = (high - low) / 2, (high + low) / 2
    total = torch.zeros_like(low)
    if low.numel() == 0:
        return total
    integrand = _small_integrand if low.is_cpu and (high * root <= 0.5).all() else _integrand
    for node, weight in zip(*np.polynomial.legendre.leggauss(nodes), strict=True):
        s = torch.add(middle, half, alpha=float(node))
        total.add_(integrand(s, root).mul_(s), alpha=float(weight))
    return total.mul_(half).mul_(2)


def _integrand(s: Tensor, root: Tensor) -> Tensor:
    """exp(-(s - root)^2) i0e(2 s root)"""
    return (s - root).square_().neg_().exp_().mul_(torch.special.i0e(2 * s * root))


def _small_integrand(s: Tensor, root: Tensor) -> Tensor:
    """`_integrand` for s root <= 0.5 by the power series of i0, which is many times faster than torch's function."""
    square = (s * root).square_()
    terms = 10 if s.dtype == torch.float64 else 6
    series = torch.full_like(s, 1 / math.factorial(terms - 1) ** 2)
    for power in range(terms - 2, -1, -1):
        series.mul_(square).add_(1 / math.factorial(power) ** 2)
    return torch.addcmul(s.square(), root, root).neg_().exp_().mul_(series)
