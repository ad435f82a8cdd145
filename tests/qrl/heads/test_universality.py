"""The constructions behind the paper's universality theorems, tested exactly on random finite quasimetrics."""

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn

from qrl.heads import IQE, DeepNorm, WideNorm
from qrl.heads.reductions import make_reduction


def random_quasimetric(size: int, seed: int) -> Tensor:
    """Shortest paths in a random graph with integer weights, which float64 represents exactly."""
    weights = np.random.default_rng(seed).integers(1, 20, (size, size))
    return torch.from_numpy(shortest_path(weights)).double()


def pairwise(head: nn.Module, latents: Tensor) -> Tensor:
    with torch.no_grad():
        distances: Tensor = head.double()(latents[:, None], latents[None])
    return distances


@pytest.mark.parametrize("seed", range(5))
def test_iqe_represents_every_finite_quasimetric(seed: int) -> None:
    d = random_quasimetric(12, seed)
    head = IQE(12, dim_per_component=1, reduction="max")
    assert torch.equal(pairwise(head, -d), d)  # f(x)_z = -d(x, z)
    assert torch.equal(pairwise(head, d.T), d)  # f(x)_z = d(z, x)
    assert torch.equal(pairwise(head, d), d.T)  # with the sign wrong: the transpose
    maxmean = IQE(12, dim_per_component=1)
    nn.init.constant_(next(maxmean.parameters()), 40.0)  # alpha = 1
    assert torch.equal(pairwise(maxmean, -d), d)


@pytest.mark.parametrize("seed", range(5))
def test_one_iqe_component_represents_every_quasipartition(seed: int) -> None:
    points, dimensions = 8, 3
    order = torch.from_numpy(np.random.default_rng(seed).integers(1, points + 1, (points, dimensions)))
    # e_i: the first i of N entries are 0, the rest 1.
    embedding = (torch.arange(points) >= order[..., None]).double().flatten(1)
    below = (order[:, None] <= order[None]).all(-1)
    head = IQE(points * dimensions, dim_per_component=points * dimensions, reduction="sum")
    assert torch.equal(pairwise(head, embedding), (~below).double())
    assert torch.equal(pairwise(head, 3 * embedding), 3 * (~below).double())


@pytest.mark.parametrize("seed", range(5))
def test_wide_norm_represents_every_finite_quasimetric(seed: int) -> None:
    d = random_quasimetric(12, seed)
    head = WideNorm(12, num_components=12, component_size=1)
    with torch.no_grad():
        head.weights.weight.copy_(torch.eye(12, 24))
    head.transform, head.reduction = nn.Identity(), make_reduction("max")
    assert torch.equal(pairwise(head, d), d)


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_deep_norm_represents_every_finite_quasimetric(seed: int, num_layers: int) -> None:
    d = random_quasimetric(12, seed)
    head = DeepNorm(12, num_components=12, num_layers=num_layers, fixed=True)
    with torch.no_grad():
        for index, weight in enumerate(head.from_input.parameters()):
            weight.copy_(torch.eye(12) * (index == 0))
        for weight in head.from_layer.parameters():
            weight.copy_(torch.eye(12))
    head.activations = nn.ModuleList(nn.ReLU() for _ in range(num_layers))
    head.transform, head.reduction = nn.Identity(), make_reduction("max")
    assert torch.equal(pairwise(head, d), d)
