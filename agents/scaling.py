"""Observations as a model sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from qrl.common.errors import ConfigError


@dataclass(frozen=True)
class Scaling:
    """(observation - mean) * scale, per feature; a constant feature has scale 0.

    With `frequencies` (dim, n), the sines and cosines of n random projections of that are added: a network learns sharp
    edges, such as walls between near cells, faster from them.
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

    def with_fourier(self, count: int, scale: float, seed: int, columns: Sequence[int] = ()) -> "Scaling":
        """With `count` random frequencies, normally distributed; the phases of scaled data have the deviation `scale`.

        So that it means the same for two coordinates and for a hundred features.
        columns: the features that they are frequencies of, by default all. Those of many features at once tell apart
        all combinations of their values, so that a network generalizes worse to new combinations.
        """
        if count == 0:
            return self
        unknown = [column for column in columns if column >= self.observation_dim]
        if unknown:
            raise ConfigError(
                f"learner.fourier_columns: there is no column {unknown[0]}; observations have {self.observation_dim}, "
                "numbered from 0"
            )
        generator = torch.Generator().manual_seed(seed % 2**63)
        used = torch.zeros(self.observation_dim, dtype=torch.bool)
        used[list(columns) or slice(None)] = True
        varying = (self.scale * used).count_nonzero().clamp(min=1)
        frequencies = scale / varying.sqrt() * torch.randn(self.observation_dim, count, generator=generator)
        if columns:
            frequencies[~used] = 0
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
