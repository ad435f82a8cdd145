"""Observations as a model sees them."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scaling:
    """(observation - mean) * scale, per feature; a constant feature has scale 0."""

    mean: Tensor
    scale: Tensor

    def __call__(self, observations: Tensor) -> Tensor:
        return (observations - self.mean) * self.scale

    @classmethod
    def fit(cls, observations: Tensor, standardize: bool) -> Self:
        """Mean 0 and standard deviation 1 over the distinct states of a dataset, or the identity."""
        if not standardize:
            return cls(torch.zeros(observations.shape[1]), torch.ones(observations.shape[1]))
        deviation = observations.double().std(0, correction=0)
        # The deviation of a constant column is rounding noise, not exactly 0.
        varies = deviation > 1e-6 * observations.abs().amax(0).clamp(min=1e-30)
        scale = torch.where(varies, 1 / deviation.clamp(min=1e-30), 0.0)
        return cls(observations.double().mean(0).float(), scale.float())

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> Self:
        """From the tensors of a checkpoint."""
        return cls(tensors["observations.mean"], tensors["observations.scale"])

    def tensors(self) -> dict[str, Tensor]:
        return {"observations.mean": self.mean, "observations.scale": self.scale}
