"""Readouts of an unconstrained output z, as a distance d and as a discounted distance D = gamma**d."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name

D_MIN = 1e-13  # lower bound of D in distances: d = 583 at gamma = 0.95, beyond any distance of interest
_MAX_EXPONENT = 30.0


class Readout:
    """A readout for one discount."""

    def __init__(self, discount: float) -> None:
        self.log_discount = math.log(discount)

    def distance(self, z: Tensor) -> Tensor:
        raise NotImplementedError  # pragma: no cover

    def discounted(self, z: Tensor) -> Tensor:
        raise NotImplementedError  # pragma: no cover


class Distance(Readout):
    """d = z. D is bounded at e^30, because a very negative z would overflow it."""

    def distance(self, z: Tensor) -> Tensor:
        return z

    def discounted(self, z: Tensor) -> Tensor:
        return (z * self.log_discount).clamp(max=_MAX_EXPONENT).exp()


class ExponentialDistance(Readout):
    """d = e^z, with z bounded at 30, where D is already 0: beyond, infinity times 0 would give NaN gradients."""

    def distance(self, z: Tensor) -> Tensor:
        return z.clamp(max=_MAX_EXPONENT).exp()

    def discounted(self, z: Tensor) -> Tensor:
        return (self.distance(z) * self.log_discount).exp()


class SquaredDistance(Readout):
    """d = z^2."""

    def distance(self, z: Tensor) -> Tensor:
        return z.square()

    def discounted(self, z: Tensor) -> Tensor:
        return (z.square() * self.log_discount).exp()


class Discounted(Readout):
    """D = z. Only the distance clips it to [D_MIN, 1]; the loss uses D unclipped."""

    def distance(self, z: Tensor) -> Tensor:
        return z.clamp(D_MIN, 1).log() / self.log_discount

    def discounted(self, z: Tensor) -> Tensor:
        return z


class SigmoidDiscounted(Readout):
    """D = sigmoid(z), so d = softplus(-z) / ln(1 / gamma)."""

    def distance(self, z: Tensor) -> Tensor:
        return F.softplus(-z) / -self.log_discount

    def discounted(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z)


READOUTS: dict[str, type[Readout]] = {
    "dist": Distance,
    "dist-exp": ExponentialDistance,
    "dist-sq": SquaredDistance,
    "disc": Discounted,
    "disc-sigmoid": SigmoidDiscounted,
}


def check_readout(name: str) -> str:
    if name not in READOUTS:
        raise ConfigError(unknown_name("readout", name, READOUTS))
    return name


def make_readout(name: str, discount: float) -> Readout:
    return READOUTS[check_readout(name)](discount)
