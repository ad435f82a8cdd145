"""Interval quasimetric embeddings (the paper's section 3)."""

from typing import Annotated

from pydantic import Field
from torch import Tensor

from qrl.heads.base import Head
from qrl.heads.interval_union import compiled_interval_union, interval_union
from qrl.heads.reductions import make_reduction
from qrl.heads.sizes import split
from qrl.registry import register_alias, register_head
from qrl.spec import MAX_SIZE


@register_head("iqe", family="IQE")
class IQE(Head):
    """Components q_i(u, v) = | union over j of [u_ij, max(u_ij, v_ij)] |, positive where v > u.

    The latent is split into components of `dim_per_component` intervals each. In a module given to torch.compile, the
    lengths come from a fused kernel, which is many times faster than the sort of eager mode.
    """

    guaranteed_quasimetric = True

    def __init__(
        self,
        input_size: int,
        dim_per_component: Annotated[int, Field(ge=1, le=MAX_SIZE, description="intervals in each union (l)")] = 8,
        reduction: Annotated[str, Field(description="sum, mean, max or maxmean of the components")] = "maxmean",
    ) -> None:
        super().__init__(input_size)
        self.num_components, self.dim_per_component = split(input_size, dim_per_component)
        self.reduction = make_reduction(reduction)
        self.union = interval_union

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        shape = (self.num_components, self.dim_per_component)
        return self.union(u.unflatten(-1, shape), v.unflatten(-1, shape))

    def accelerate_(self) -> None:
        """Use the fused kernel of torch.compile also in eager mode; a Q-model's `accelerate_` calls it."""
        self.union = compiled_interval_union

    def extra_repr(self) -> str:
        return f"input_size={self.input_size}, {self.num_components} components of {self.dim_per_component} intervals"


register_alias("iqe-maxmean", "iqe", reduction="maxmean")
register_alias("iqe-sum", "iqe", reduction="sum")
