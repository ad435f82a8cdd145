"""Deep Norms and Wide Norms: asymmetric norms N of u - v."""

from collections.abc import Callable
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name
from qrl.errors import ShapeError
from qrl.heads.base import Head
from qrl.heads.reductions import MaxMean
from qrl.heads.transforms import Concave
from qrl.registry import register_alias, register_head
from qrl.spec import MAX_LAYERS, MAX_SIZE


class NonNegativeLinear(nn.Linear):
    """A linear map without bias whose weights are projected to >= 0 initially and after every optimizer step.

    Projected weights keep their gradient and can grow again, unlike with relu(weight) in the forward pass.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features, bias=False)
        self.project_()

    @torch.no_grad()
    def project_(self) -> None:
        self.weight.clamp_(min=0)


def project_(model: nn.Module) -> None:
    """Project the constrained weights of every Deep Norm and Wide Norm in `model`; call it after an optimizer step."""
    for module in model.modules():
        if isinstance(module, NonNegativeLinear):
            module.project_()


class MaxReLU(nn.Module):
    """On pairs (x, y) of consecutive features: all max(x, y), then all (w1 relu(x) + w2 relu(y)) / 2.

    Each feature has a learned weight w = softplus(raw) >= 0; raw is initially 0.
    """

    def __init__(self, num_features: int) -> None:
        super().__init__()
        if num_features % 2:
            raise ShapeError(f"max-ReLU works on pairs of features, so their number ({num_features}) must be even")
        self.raw_weights = nn.Parameter(torch.zeros(num_features))

    def forward(self, features: Tensor) -> Tensor:
        weighted = F.softplus(self.raw_weights) * F.relu(features)
        return torch.cat([features.unflatten(-1, (-1, 2)).amax(-1), weighted.unflatten(-1, (-1, 2)).mean(-1)], -1)


_ACTIVATIONS: dict[str, Callable[[int], nn.Module]] = {"maxrelu": MaxReLU, "relu": lambda _: nn.ReLU()}


@register_head("deep-norm", family="Deep Norm")
class DeepNorm(Head):
    """h_1 = act(U_0 h), h_{i+1} = act(W_i h_i + U_i h) with h = u - v and W_i >= 0; the last h_i are the components.

    As published, the last activation is a max-ReLU, whose output can be negative: then d can be negative, and the
    concave transform violates the triangle inequality. `fixed` ends in a ReLU, which makes it a quasimetric.
    """

    guaranteed_quasimetric = False  # True if `fixed`

    def __init__(
        self,
        input_size: int,
        num_components: Annotated[int, Field(ge=2, le=MAX_SIZE, description="width of every layer; must be even")] = 64,
        num_layers: Annotated[int, Field(ge=1, le=MAX_LAYERS, description="number of layers")] = 3,
        fixed: Annotated[bool, Field(description="ReLU as the last activation: a true quasimetric")] = False,
        activation: Annotated[str, Field(description="maxrelu or relu (which implies fixed)")] = "maxrelu",
    ) -> None:
        super().__init__(input_size)
        if activation not in _ACTIVATIONS:
            raise ConfigError(unknown_name("activation", activation, _ACTIVATIONS))
        make_activation = _ACTIVATIONS[activation]
        self.num_components, self.activation, self.fixed = num_components, activation, fixed or activation == "relu"
        self.guaranteed_quasimetric = self.fixed
        self.from_input = nn.ModuleList(nn.Linear(input_size, num_components, bias=False) for _ in range(num_layers))
        self.from_layer = nn.ModuleList(
            NonNegativeLinear(num_components, num_components) for _ in range(num_layers - 1)
        )
        self.activations = nn.ModuleList(make_activation(num_components) for _ in range(num_layers - 1))
        self.activations.append(nn.ReLU() if self.fixed else make_activation(num_components))
        self.transform = Concave(num_components)
        self.reduction = MaxMean()

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        difference = u - v
        first, *from_inputs = self.from_input  # not slices, which would create new modules
        first_activation, *activations = self.activations
        hidden: Tensor = first_activation(first(difference))
        for from_layer, from_input, activation in zip(self.from_layer, from_inputs, activations, strict=True):
            hidden = activation(from_layer(hidden) + from_input(difference))
        return hidden

    def extra_repr(self) -> str:
        published = "" if self.fixed else " (as published: d can be negative and the triangle inequality can fail)"
        sizes = f"input_size={self.input_size}, {len(self.from_input)} layers of {self.num_components} components"
        return f"{sizes}, activation={self.activation}, fixed={self.fixed}{published}"


register_alias("deep-norm-fixed", "deep-norm", fixed=True)


@register_head("wide-norm", family="Wide Norm")
class WideNorm(Head):
    """Components q_i = | W_i [(u - v)^+; (v - u)^+] |_2 with W_i >= 0."""

    guaranteed_quasimetric = True

    def __init__(
        self,
        input_size: int,
        num_components: Annotated[int, Field(ge=1, le=MAX_SIZE, description="number of norms (k)")] = 32,
        component_size: Annotated[int, Field(ge=1, le=MAX_SIZE, description="rows of each matrix (c)")] = 32,
    ) -> None:
        super().__init__(input_size)
        self.num_components, self.component_size = num_components, component_size
        # All W_i stacked: the initial values of a row depend only on its length, so this equals k separate layers.
        self.weights = NonNegativeLinear(2 * input_size, num_components * component_size)
        self.transform = Concave(num_components)
        self.reduction = MaxMean()

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        difference = u - v
        halves = torch.cat([F.relu(difference), F.relu(-difference)], -1)
        shape = (self.num_components, self.component_size)
        norms: Tensor = torch.linalg.vector_norm(self.weights(halves).unflatten(-1, shape), dim=-1)
        return norms

    def extra_repr(self) -> str:
        return f"input_size={self.input_size}, {self.num_components} components of size {self.component_size}"
