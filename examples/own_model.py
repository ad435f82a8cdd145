"""A quasimetric head in a model of one's own: learn the distances of a small directed graph.

    python examples/own_model.py [--compile] [--save model.safetensors]

An encoder and a head are trained to regress shortest-path lengths, once with IQE and once with the Euclidean distance,
which is symmetric and cannot represent one-way edges. With --compile, torch.compile fuses the model: worthwhile for
larger models, as compiling takes longer than this example.
"""

import argparse

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from scipy.sparse.csgraph import shortest_path
from torch import Tensor, nn

from qrl.heads import IQE, Euclidean, Head, project_

NODES, LATENT_SIZE = 20, 32


def graph_distances() -> Tensor:
    """(20, 20): shortest paths on a one-way ring with two chords that can be used in both directions."""
    edges = np.zeros((NODES, NODES))
    for node in range(NODES):
        edges[node, (node + 1) % NODES] = 1
    for a, b in ((0, 7), (5, 14)):
        edges[a, b] = edges[b, a] = 1
    return torch.tensor(shortest_path(edges), dtype=torch.float32)


class DistanceModel(nn.Module):
    """d(x, y) = head(encoder(x), encoder(y)) for the nodes x and y of a graph."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Embedding(NODES, 64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, LATENT_SIZE))
        self.head = head

    def forward(self, sources: Tensor, targets: Tensor) -> Tensor:
        distances: Tensor = self.head(self.encoder(sources), self.encoder(targets))
        return distances


def train(head: Head, steps: int, compiled: bool = False) -> tuple[DistanceModel, float]:
    """The trained model and its mean absolute error over all pairs of nodes."""
    exact = graph_distances()
    sources, targets = torch.cartesian_prod(torch.arange(NODES), torch.arange(NODES)).T
    model = DistanceModel(head)
    if compiled:
        model.compile()  # in place, so that the names in its state dict stay the same
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        error = model(sources, targets) - exact.flatten()
        optimizer.zero_grad()
        error.square().mean().backward()
        optimizer.step()
        project_(model)  # only Deep Norm and Wide Norm have weights to project; elsewhere it is a no-op
    with torch.no_grad():
        return model, (model(sources, targets) - exact.flatten()).abs().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--save", metavar="FILE", help="write the model with IQE as safetensors, and read it back")
    parser.add_argument("--steps", type=int, default=500)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model, error = train(IQE(LATENT_SIZE, dim_per_component=8), arguments.steps, arguments.compile)
    print(f"IQE:       mean absolute error {error:.2f}")
    _, error = train(Euclidean(LATENT_SIZE), arguments.steps, arguments.compile)
    print(f"Euclidean: mean absolute error {error:.2f}")
    ends = torch.tensor([0, NODES - 1])
    there, back = model(ends, ends.flip(0)).tolist()
    print(f"IQE, from node 0 to its predecessor: {there:.1f} steps (exact: 11), and back: {back:.1f} (exact: 1)")
    if arguments.save:
        save_file(model.state_dict(), arguments.save)
        again = DistanceModel(IQE(LATENT_SIZE, dim_per_component=8))
        again.load_state_dict(load_file(arguments.save))
        assert torch.allclose(again(ends, ends.flip(0)), model(ends, ends.flip(0)))


if __name__ == "__main__":
    main()
