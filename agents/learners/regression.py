"""Regression of distances: MSE of D = gamma**d over pairs of nodes. Unreachable pairs have target 0.

A node is a state with one action, so that every Q-model can be used.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.learners.base import (
    DISCOUNT_REPORTS,
    Learner,
    Loss,
    discount_reports,
    discounted,
    triangle_regularizer,
)
from qrl.agents.learners.registry import register_learner
from qrl.agents.learners.sampler import Sampler
from qrl.agents.learners.settings import RegressionSettings
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.graphs.landmarks import Pairs
from qrl.q_models.base import QModel


class PairSampler(Sampler):
    """Draws training pairs, uniform with replacement."""

    def __init__(self, pairs: Pairs, discount: float, seed: int) -> None:
        super().__init__(seed)
        self.nodes = pairs.nodes.astype(np.int64)
        self.targets = np.float32(discount) ** pairs.distances  # 0 for unreachable pairs

    def sample(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Sources, targets and discounted distances."""
        pairs = self.rng.integers(len(self.nodes), size=size)
        source, target = torch.from_numpy(np.ascontiguousarray(self.nodes[pairs].T))
        return source, target, torch.from_numpy(self.targets[pairs])

    def sample_nodes(self, size: int) -> Tensor:
        """Nodes of random pairs."""
        return torch.from_numpy(self.nodes.reshape(-1)[self.rng.integers(self.nodes.size, size=size)])


def regression_loss(
    model: QModel, features: Tensor, pairs: tuple[Tensor, Tensor, Tensor], triplets: Tensor | None, weight: float
) -> Loss:
    """`triplets`: (3, triplets) nodes for the triangle regularizer, which has the given `weight`."""
    source, target, y = pairs
    if triplets is not None:
        x, via, z = triplets
        # Joined to the batch: one encoding and one update of the running statistics.
        source, target = torch.cat([source, x, via, x]), torch.cat([target, via, z, z])
    only_action = torch.zeros_like(source)
    predicted = discounted(model, features, source, only_action, target, only_action)
    fit = F.mse_loss(predicted[: len(y)], y.to(predicted.dtype))
    reports = {"loss_fit": fit}
    total = fit
    if triplets is not None:
        reports["loss_triangle"] = triangle_regularizer(*predicted[len(y) :].unflatten(0, (3, -1)))
        total = fit + weight * reports["loss_triangle"]
    return Loss(total, reports | discount_reports(predicted[: len(y)], y, model))


@register_learner("regression", RegressionSettings)
class RegressionLearner(Learner):
    settings: RegressionSettings
    sampler: PairSampler

    def make_sampler(self, dataset: GraphDataset, seed: int) -> PairSampler:
        return PairSampler(dataset.training, self.settings.discount, seed)

    @property
    def reports(self) -> tuple[str, ...]:
        return ("loss_fit", *(("loss_triangle",) if self.settings.triangle > 0 else ()), *DISCOUNT_REPORTS)

    def loss(self) -> Loss:
        settings, device = self.settings, self.observations.device
        source, target, y = (tensor.to(device) for tensor in self.sampler.sample(settings.batch_size))
        triplets = None
        if settings.triangle > 0:
            triplets = self.sampler.sample_nodes(3 * settings.triangle_triplets).view(3, -1).to(device)
        return regression_loss(self.model, self.observations, (source, target, y), triplets, settings.triangle)
