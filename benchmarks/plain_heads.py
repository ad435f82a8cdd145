"""Every head but IQE as the plainest torch expression of its formula, with the head's own parameters."""

from collections.abc import Callable
from typing import Any

import torch
from scipy import special
from torch import Tensor
from torch.nn import functional as F

from qrl.heads.poisson_race import probability_equal, probability_one_more

Plain = Callable[[Any, Tensor, Tensor], Tensor]


def _reduce(head: Any, components: Tensor) -> Tensor:
    reduced: Tensor = head.reduction(head.transform(components))
    return reduced


def pqe_lh(head: Any, u: Tensor, v: Tensor) -> Tensor:
    excess = F.relu(u - v).unflatten(-1, (head.num_components, head.dim_per_component))
    return _reduce(head, 1 - torch.exp(-excess.mean(-1)))


class _Race(torch.autograd.Function):
    """P(X > Y) by scipy's non-central chi-squared distribution, element by element, with its two derivatives."""

    @staticmethod
    def forward(ctx: Any, mu1: Tensor, mu2: Tensor) -> Tensor:
        ctx.save_for_backward(mu1, mu2)
        return torch.from_numpy(special.chndtr(2 * mu1.double().numpy(), 2, 2 * mu2.double().numpy())).to(mu1.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        mu1, mu2 = ctx.saved_tensors
        return grad * probability_equal(mu1, mu2), -grad * probability_one_more(mu1, mu2)


def pqe_gg(head: Any, u: Tensor, v: Tensor) -> Tensor:
    only_u, only_v = (head.scale(mass) / head.dim_per_component for mass in head.set_differences(u, v))
    less_equal = 1 - _Race.apply(only_u, only_v)  # type: ignore[no-untyped-call]
    return _reduce(head, 1 - less_equal.unflatten(-1, (head.num_components, head.dim_per_component)).prod(-1))


def deep_norm(head: Any, u: Tensor, v: Tensor) -> Tensor:
    h = u - v
    hidden = head.activations[0](h @ head.from_input[0].weight.T)
    for index in range(1, len(head.from_input)):
        pre = hidden @ head.from_layer[index - 1].weight.T + h @ head.from_input[index].weight.T
        hidden = head.activations[index](pre)
    return _reduce(head, hidden)


def wide_norm(head: Any, u: Tensor, v: Tensor) -> Tensor:
    halves = torch.cat([F.relu(u - v), F.relu(v - u)], -1)
    rows = (halves @ head.weights.weight.T).unflatten(-1, (head.num_components, head.component_size))
    return _reduce(head, rows.norm(dim=-1))


def mrn(head: Any, u: Tensor, v: Tensor) -> Tensor:
    norm = (head.symmetric(u) - head.symmetric(v)).norm(dim=-1) / head.output_size**0.5
    residual = F.relu(head.asymmetric(u) - head.asymmetric(v)).amax(-1)
    distance: Tensor = (norm if head.fixed else norm.square()) + residual
    return distance


def euclidean(head: Any, u: Tensor, v: Tensor) -> Tensor:
    distance: Tensor = (u - v).norm(dim=-1)
    return distance


def l1(head: Any, u: Tensor, v: Tensor) -> Tensor:
    return (u - v).abs().sum(-1)


def _angle(u: Tensor, v: Tensor) -> Tensor:
    a, b = u / u.norm(dim=-1, keepdim=True), v / v.norm(dim=-1, keepdim=True)
    return 2 * torch.atan2((a - b).norm(dim=-1), (a + b).norm(dim=-1))


def spherical(head: Any, u: Tensor, v: Tensor) -> Tensor:
    return F.softplus(head.raw_scale) * _angle(u, v)


def metric_mixture(head: Any, u: Tensor, v: Tensor) -> Tensor:
    weights = F.softplus(head.raw_weights)
    return weights[0] * euclidean(head, u, v) + weights[1] * l1(head, u, v) + weights[2] * _angle(u, v)


PLAIN: dict[str, Plain] = {
    "pqe-lh": pqe_lh,
    "pqe-gg": pqe_gg,
    "deep-norm": deep_norm,
    "deep-norm-fixed": deep_norm,
    "wide-norm": wide_norm,
    "mrn": mrn,
    "mrn-fixed": mrn,
    "euclidean": euclidean,
    "l1": l1,
    "spherical": spherical,
    "metric-mixture": metric_mixture,
}
