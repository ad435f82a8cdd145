"""Scores of a model on pairs of nodes of a graph."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qrl.agents.evaluation.graph_metrics import GRAPH_METRICS
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.graphs.landmarks import Pairs
from qrl.q_models.base import QModel
from qrl.readouts import D_MIN

_NODE_CHUNK, _PAIR_CHUNK = 8192, 16384  # bound the memory


@dataclass(frozen=True)
class PairEstimates:
    """Estimated and exact distances of pairs of nodes, each (pairs,); `discount` is gamma in D = gamma**d."""

    estimate: NDArray[np.float64]
    discounted: NDArray[np.float64]
    exact: NDArray[np.float64]
    discount: float

    @cached_property
    def reachable(self) -> NDArray[np.bool_]:
        return np.isfinite(self.exact)

    @cached_property
    def clipped(self) -> NDArray[np.float64]:
        return np.clip(self.estimate, 0, math.log(D_MIN) / math.log(self.discount))


@torch.no_grad()
def pair_distances(model: QModel, features: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """Learned distances and discounted distances of (pairs, 2) nodes, each distinct node encoded once."""
    training = model.training
    model.eval()
    ids, inverse = torch.unique(nodes, return_inverse=True)
    rows = torch.cat([model.encode(features.index_select(0, part)) for part in ids.split(_NODE_CHUNK)])
    chunks = []
    for part in inverse.split(_PAIR_CHUNK):
        source, target = (rows.index_select(0, side) for side in part.T)
        only_action = torch.zeros(len(part), dtype=torch.long, device=rows.device)
        query = (source, only_action, target, only_action)
        chunks.append(torch.stack([model.distance(*query), model.discounted(*query)]))
    model.train(training)
    distance, discounted = torch.cat(chunks, 1)
    return distance, discounted


def score_pairs(model: QModel, features: Tensor, pairs: Pairs) -> dict[str, float]:
    """The metrics of train-graph over the pairs; NaN for metrics of pairs of which there are none."""
    nodes = torch.from_numpy(pairs.nodes.astype(np.int64)).to(features.device)
    estimate, discounted = (values.double().cpu().numpy() for values in pair_distances(model, features, nodes))
    estimates = PairEstimates(estimate, discounted, pairs.distances.astype(np.float64), model.spec.discount)
    scores = {metric.key: metric.compute(estimates) for metric in GRAPH_METRICS}
    return {key: math.nan if value is None else value for key, value in scores.items()}


def score_validation(model: QModel, features: Tensor, dataset: GraphDataset, seed: int) -> dict[str, float]:
    """Scores on the validation pairs; nothing is random, so `seed` is not used."""
    return score_pairs(model, features, dataset.validation)
