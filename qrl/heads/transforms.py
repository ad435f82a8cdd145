"""The concave transform of Deep Norms and Wide Norms."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Concave(nn.Module):
    """f(t) = min_m (a_m t + b_m) for each component, with 0 < a < 2, b >= 0 and b_1 = 0: 9 parameters at 5 lines.

    For t >= 0 it is increasing and concave with f(0) = 0, and thus preserves the triangle inequality; for t < 0 it does
    not. Initially it is (almost) the identity.
    """

    def __init__(self, num_components: int, num_lines: int = 5) -> None:
        super().__init__()
        self.raw_slopes = nn.Parameter(1e-3 * torch.randn(num_components, num_lines))
        self.raw_offsets = nn.Parameter(-1 + 1e-3 * torch.randn(num_components, num_lines - 1))

    def forward(self, components: Tensor) -> Tensor:
        slopes = 2 * self.raw_slopes.sigmoid()
        offsets = F.pad(F.softplus(self.raw_offsets), (1, 0))
        return (components.unsqueeze(-1) * slopes + offsets).amin(-1)
