"""Interval quasimetric embeddings (the paper's section 3): how much of the line a union of intervals covers."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from qrl.heads.base import Head
from qrl.heads.reductions import make_reduction
from qrl.heads.sizes import split
from qrl.registry import register_head


def interval_union(u: Tensor, v: Tensor) -> Tensor:
    """The length of the union over j of [u_j, max(u_j, v_j)]: (..., l) and (..., l) give (...).

    Intervals are walked by their left ends, each adding what lies beyond the furthest right end so far. So the value is
    a sum of non-negative lengths: exactly 0, with zero gradient, wherever v <= u.
    """
    # The order depends on u alone, so it is found before u is repeated for every v. It is stable: equal left ends keep
    # their order, so ties are deterministic.
    lefts, order = u.sort(dim=-1, stable=True)
    shape = torch.broadcast_shapes(u.shape, v.shape)
    rights = v.expand(shape).gather(-1, order.expand(shape))
    left, right = lefts[..., 0], rights[..., 0]
    furthest = torch.maximum(left, right)
    length = F.relu(right - left)  # relu and not clamp: at 0 it passes no gradient
    for left, right in zip(lefts[..., 1:].unbind(-1), rights[..., 1:].unbind(-1), strict=True):
        length = length + F.relu(right - torch.maximum(left, furthest))
        furthest = torch.maximum(furthest, right)
    return length


@register_head("iqe-sum", family="IQE", reduction="sum")
@register_head("iqe-maxmean", family="IQE")
class IQE(Head):
    """Components q_i(u, v) = | union over j of [u_ij, max(u_ij, v_ij)] |: cost arises where v > u."""

    guaranteed_quasimetric = True

    def __init__(
        self,
        input_size: int,
        dim_per_component: Annotated[int, Field(ge=1, description="intervals in each union (l)")] = 8,
        reduction: Annotated[str, Field(description="sum, mean, max or maxmean of the components")] = "maxmean",
    ) -> None:
        super().__init__(input_size)
        self.num_components, self.dim_per_component = split(input_size, dim_per_component)
        self.reduction = make_reduction(reduction)

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        shape = (self.num_components, self.dim_per_component)
        return interval_union(u.unflatten(-1, shape), v.unflatten(-1, shape))

    def extra_repr(self) -> str:
        return f"input_size={self.input_size}, {self.num_components} components of {self.dim_per_component} intervals"
