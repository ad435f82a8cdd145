"""Observations as a model sees them."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scaling:
    """(observation - mean) * scale, for each feature; a feature that never changes has the scale 0."""

    mean: Tensor
    scale: Tensor

    def __call__(self, observations: Tensor) -> Tensor:
        return (observations - self.mean) * self.scale


def fit_scaling(observations: Tensor, standardize: bool) -> Scaling:
    """Mean 0 and deviation 1 over the distinct states of a dataset, or no change."""
    if not standardize:
        return Scaling(torch.zeros(observations.shape[1]), torch.ones(observations.shape[1]))
    deviation = observations.double().std(0, correction=0)
    # A constant column's deviation is rounding noise, not exactly 0.
    varies = deviation > 1e-6 * observations.abs().amax(0).clamp(min=1e-30)
    scale = torch.where(varies, 1 / deviation.clamp(min=1e-30), 0.0)
    return Scaling(observations.double().mean(0).float(), scale.float())
