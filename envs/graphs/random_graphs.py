"""Three types of random directed graphs, and features for their nodes.

The paper takes its graphs and features from earlier work and shows only pictures of them, so these are our own: dense
with weighted edges; sparse with many unreachable pairs; and sparse with blocks connected by a few one-way edges.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from qrl.envs.graphs.graph import Graph

Table = NDArray[np.float64]

DENSE_EDGES, DENSE_LENGTHS = 0.08, (1, 10)  # edge probability, range of edge lengths
SPARSE_DEGREE = 1.5  # mean out-degree
BLOCKS, BLOCK_DEGREE, BRIDGES = 5, 3, 3  # blocks, mean out-degree within a block, edges to the next block
ANCHORS, HIDDEN = 32, 128  # anchor nodes, hidden units


def _dense(nodes: int, rng: np.random.Generator) -> Table:
    lengths = rng.uniform(*DENSE_LENGTHS, (nodes, nodes))
    return np.where(rng.random((nodes, nodes)) < DENSE_EDGES, lengths, 0)


def _sparse(nodes: int, rng: np.random.Generator) -> Table:
    return np.where(rng.random((nodes, nodes)) < SPARSE_DEGREE / nodes, 1.0, 0)


def _blocks(nodes: int, rng: np.random.Generator) -> Table:
    block = np.arange(nodes) * BLOCKS // nodes
    same_block = block[:, None] == block
    edges: NDArray[np.bool_] = same_block & (rng.random((nodes, nodes)) < BLOCK_DEGREE * BLOCKS / nodes)
    for first in range(BLOCKS - 1):
        sources, targets = np.flatnonzero(block == first), np.flatnonzero(block == first + 1)
        edges[rng.choice(sources, BRIDGES), rng.choice(targets, BRIDGES)] = True
    return edges.astype(np.float64)


GENERATORS: dict[str, Callable[[int, np.random.Generator], Table]] = {
    "random-dense": _dense,
    "random-sparse": _sparse,
    "random-block": _blocks,
}


def random_graph(kind: str, nodes: int, rng: np.random.Generator) -> Graph:
    lengths = GENERATORS[kind](nodes, rng)
    np.fill_diagonal(lengths, 0)
    return Graph(csr_array(lengths), np.arange(nodes))


def anchor_features(
    distances: Table, size: int, discount: float, noise: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """(nodes, size): a random network applied to the discounted distances to and from anchor nodes, plus noise.

    `noise` is its scale relative to the features. With little of it they are informative about a node's position, but
    no distance can be read off directly.
    """
    anchors = rng.choice(len(distances), min(ANCHORS, len(distances)), replace=False)
    inputs = discount ** np.concatenate([distances[:, anchors], distances[anchors].T], axis=1)
    hidden = np.tanh(_standardized(inputs) @ rng.normal(size=(inputs.shape[1], HIDDEN)) / np.sqrt(inputs.shape[1]))
    features = _standardized(hidden @ rng.normal(size=(HIDDEN, size)))
    return _standardized(features + noise * rng.normal(size=features.shape)).astype(np.float32)


def _standardized(table: Table) -> Table:
    deviation = table.std(0)
    standardized: Table = (table - table.mean(0)) / np.where(deviation > 1e-12, deviation, 1)
    return standardized
