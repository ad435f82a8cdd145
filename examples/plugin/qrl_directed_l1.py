"""A custom head: an l1 distance whose cost depends on the direction of each coordinate."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from qrl import register_head
from qrl.heads import Head
from qrl.heads.reductions import make_reduction


@register_head("directed-l1")
class DirectedL1(Head):
    """Components q_i = up_i (v_i - u_i)^+ + down_i (u_i - v_i)^+ with learned rates up, down >= 0."""

    guaranteed_quasimetric = True

    def __init__(
        self,
        input_size: int,
        reduction: Annotated[str, Field(description="sum, mean, max or maxmean of the components")] = "mean",
    ) -> None:
        super().__init__(input_size)
        self.raw_up = nn.Parameter(torch.zeros(input_size))
        self.raw_down = nn.Parameter(torch.full((input_size,), -2.0))
        self.reduction = make_reduction(reduction)

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        rise = v - u
        return F.softplus(self.raw_up) * F.relu(rise) + F.softplus(self.raw_down) * F.relu(-rise)

    def extra_repr(self) -> str:
        return f"input_size={self.input_size}"
