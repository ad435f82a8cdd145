"""Metric residual networks: the sum of a symmetric and an asymmetric part."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from qrl.heads.base import Head
from qrl.heads.reductions import Sum
from qrl.registry import register_alias, register_head
from qrl.spec import MAX_SIZE


@register_head("mrn", family="MRN")
class MRN(Head):
    """d = |phi(u) - phi(v)|^p + max_i (psi(u)_i - psi(v)_i)^+, with two-layer networks phi and psi.

    As published, p = 2, and a squared norm violates the triangle inequality; `fixed` uses p = 1, a quasimetric.
    """

    guaranteed_quasimetric = False  # True if `fixed`

    def __init__(
        self,
        input_size: int,
        hidden_size: Annotated[int, Field(ge=1, le=MAX_SIZE, description="width of both networks")] = 128,
        fixed: Annotated[bool, Field(description="the norm instead of its square: a true quasimetric")] = False,
        normalize: Annotated[bool, Field(description="average over the outputs in the norm instead of summing")] = True,
        output_size: Annotated[
            int | None, Field(ge=1, le=MAX_SIZE, description="size of their outputs; if none, hidden_size")
        ] = None,
    ) -> None:
        super().__init__(input_size)
        self.hidden_size, self.fixed, self.normalize = hidden_size, fixed, normalize
        self.guaranteed_quasimetric = fixed
        self.output_size = output_size or hidden_size
        self.symmetric = _two_layers(input_size, hidden_size, self.output_size)
        self.asymmetric = _two_layers(input_size, hidden_size, self.output_size)
        self.reduction = Sum()

    def embed(self, latents: Tensor) -> Tensor:
        """(..., 2 output_size): phi and psi."""
        return torch.cat([self.symmetric(latents), self.asymmetric(latents)], -1)

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        """(..., 2): the symmetric and the asymmetric part."""
        symmetric, asymmetric = (u - v).split(self.output_size, -1)
        # vector_norm has zero gradient at u = v, where a square root would give NaN.
        norm = torch.linalg.vector_norm(symmetric, dim=-1)
        if self.normalize:
            norm = norm / self.output_size**0.5
        residual = F.relu(asymmetric.amax(-1))  # in this order a pass less over memory
        return torch.stack([norm if self.fixed else norm.square(), residual], -1)

    def extra_repr(self) -> str:
        published = "" if self.fixed else " (as published: the triangle inequality can fail)"
        sizes = f"input_size={self.input_size}, hidden_size={self.hidden_size}, output_size={self.output_size}"
        return f"{sizes}, fixed={self.fixed}{published}"


register_alias("mrn-fixed", "mrn", fixed=True)


def _two_layers(input_size: int, hidden_size: int, output_size: int) -> nn.Module:
    return nn.Sequential(nn.Linear(input_size, hidden_size), nn.ReLU(), nn.Linear(hidden_size, output_size))
