"""Observations as a model sees them."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scaling:
    """(observation - mean) * scale, per feature; a constant feature has scale 0.

    With `frequencies` (dim, n), the sines and cosines of n phases are added, each of a random frequency of one feature:
    a network learns sharp edges, such as walls between near cells, faster from them.
    """

    mean: Tensor
    scale: Tensor
    frequencies: Tensor | None = None

    def __call__(self, observations: Tensor) -> Tensor:
        scaled = (observations - self.mean) * self.scale
        if self.frequencies is None:
            return scaled
        phases = scaled @ self.frequencies
        return torch.cat([scaled, phases.sin(), phases.cos()], -1)

    @property
    def observation_dim(self) -> int:
        """Of what it is given."""
        return len(self.mean)

    @property
    def output_dim(self) -> int:
        return self.observation_dim + (0 if self.frequencies is None else 2 * self.frequencies.shape[1])

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

    def with_fourier(self, observations: Tensor, count: int, scale: float, seed: int) -> "Scaling":
        """With `count` random frequencies of standard deviation `scale`, spread evenly over the features.

        Each is of one feature: phases of several would hash their combinations, and a network would not generalize to
        new ones. Features with only two values need none.
        """
        graded = [column for column in range(self.observation_dim) if len(observations[:, column].unique()) > 2]
        if count == 0 or not graded:
            return self
        generator = torch.Generator().manual_seed(seed % 2**63)
        frequencies = torch.zeros(self.observation_dim, count)
        order = torch.tensor(graded)[torch.randperm(len(graded), generator=generator)]
        each = torch.arange(count)
        frequencies[order[each % len(order)], each] = scale * torch.randn(count, generator=generator)
        return Scaling(self.mean, self.scale, frequencies)

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> Self:
        """From the tensors of a checkpoint."""
        mean, scale = tensors["observations.mean"], tensors["observations.scale"]
        frequencies = tensors.get("observations.frequencies")
        matching = mean.ndim == 1 and mean.shape == scale.shape
        if not matching or (frequencies is not None and frequencies.shape[:-1] != mean.shape):
            raise ValueError("the shapes of its observation scaling do not match")
        return cls(mean, scale, frequencies)

    def tensors(self) -> dict[str, Tensor]:
        tensors = {"observations.mean": self.mean, "observations.scale": self.scale}
        return tensors if self.frequencies is None else tensors | {"observations.frequencies": self.frequencies}
