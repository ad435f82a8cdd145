"""Regression of distances: MSE of the discounted distance D = gamma**d over pairs of nodes; no way is D = 0.

A node is a state of one action, so that every Q-model serves.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.evaluation.statistics import rank_correlation
from qrl.agents.learners.base import Learner, Loss, discounted, triangle_regulariser
from qrl.agents.learners.sampler import Sampler
from qrl.agents.learners.settings import RegressionSettings
from qrl.envs.graphs.landmarks import Pairs
from qrl.q_models.base import QModel
from qrl.readouts import D_MIN

_NODES_AT_ONCE, _PAIRS_AT_ONCE = 8192, 16384  # bounds of memory when nothing is learned


class PairSampler(Sampler):
    """Draws training pairs, uniform with replacement."""

    def __init__(self, pairs: Pairs, discount: float, seed: int) -> None:
        super().__init__(seed)
        self.nodes = pairs.nodes.astype(np.int64)
        self.targets = np.float32(discount) ** pairs.distances  # 0 where there is no way

    def sample(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Sources, targets and discounted distances."""
        chosen = self.rng.integers(len(self.nodes), size=size)
        source, target = torch.from_numpy(np.ascontiguousarray(self.nodes[chosen].T))
        return source, target, torch.from_numpy(self.targets[chosen])

    def sample_nodes(self, size: int) -> Tensor:
        """Nodes of random pairs."""
        return torch.from_numpy(self.nodes.reshape(-1)[self.rng.integers(self.nodes.size, size=size)])


def regression_loss(
    model: QModel,
    features: Tensor,
    pairs: tuple[Tensor, Tensor, Tensor],
    triplets: Tensor | None,
    weight: float,
) -> tuple[Tensor, dict[str, Tensor]]:
    """`triplets`: (3, triplets) nodes for the triangle regulariser, which counts `weight`."""
    source, target, y = pairs
    if triplets is not None:
        x, between, z = triplets
        # Asked together with the batch: one encoding and one update of statistics.
        source, target = torch.cat([source, x, between, x]), torch.cat([target, between, z, z])
    nothing = torch.zeros_like(source)
    predicted = discounted(model, features, source, nothing, target, nothing)
    fit = F.mse_loss(predicted[: len(y)], y.to(predicted.dtype))
    parts = {"fit": fit, "predicted": predicted[: len(y)].detach()}
    if triplets is None:
        return fit, parts
    parts["triangle"] = triangle_regulariser(*predicted[len(y) :].unflatten(0, (3, -1)))
    return fit + weight * parts["triangle"], parts


class RegressionLearner(Learner[PairSampler, RegressionSettings]):
    def loss(self, sampler: PairSampler) -> Loss:
        settings, device = self.settings, self.observations.device
        source, target, y = (tensor.to(device) for tensor in sampler.sample(settings.batch_size))
        triplets = None
        if settings.triangle > 0:
            triplets = sampler.sample_nodes(3 * settings.triangle_triplets).view(3, -1).to(device)
        loss, parts = regression_loss(self.model, self.observations, (source, target, y), triplets, settings.triangle)
        return Loss(loss, parts, y)


@torch.no_grad()
def distances_of(model: QModel, features: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Estimated distances and discounted distances of (pairs, 2) nodes, each distinct node encoded once."""
    training = model.training
    model.eval()
    ids, places = torch.unique(nodes, return_inverse=True)
    rows = torch.cat([model.encode(features.index_select(0, part)) for part in ids.split(_NODES_AT_ONCE)])
    found = []
    for part in places.split(_PAIRS_AT_ONCE):
        source, target = (rows.index_select(0, side) for side in part.T)
        nothing = torch.zeros(len(part), dtype=torch.long, device=rows.device)
        asked = (source, nothing, target, nothing)
        found.append(torch.stack([model.distance(*asked), model.discounted(*asked)]))
    model.train(training)
    distance, discounted = torch.cat(found, 1)
    return distance, discounted


def score_pairs(model: QModel, features: Tensor, pairs: Pairs) -> dict[str, float]:
    """What train-graph evaluates, over the pairs; NaN for what needs pairs of which there are none."""
    nodes = torch.from_numpy(pairs.nodes.astype(np.int64)).to(features.device)
    estimate, discounted = (each.double().cpu().numpy() for each in distances_of(model, features, nodes))
    exact = pairs.distances.astype(np.float64)
    gamma = model.spec.discount
    finite = np.isfinite(exact)
    clipped = np.clip(estimate, 0, math.log(D_MIN) / math.log(gamma))
    return {
        "mse": float(np.square(discounted - gamma**exact).mean()),
        "l1_error": _mean(np.abs(estimate - exact)[finite]),
        "l1_error_clipped": _mean(np.abs(clipped - exact)[finite]),
        "no_way_estimate": _mean(estimate[~finite]),
        "no_way_estimate_clipped": _mean(clipped[~finite]),
        "spearman": rank_correlation(estimate[finite], exact[finite]),
    }


def _mean(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(values.mean()) if len(values) else math.nan
