"""Three kinds of random directed graphs with features for their nodes.

The paper takes its graphs and features from earlier work, of which it shows only pictures, so these are ours: dense,
with lengths; sparse, in which many nodes do not reach each other; and sparse with blocks, which are entered and left
through a few one-way edges.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from qrl.envs.graphs.graph import Graph

Table = NDArray[np.float64]

DENSE_EDGES, DENSE_LENGTHS = 0.08, (1, 10)  # probability of an edge, range of its length
SPARSE_DEGREE = 1.5  # mean number of edges that leave a node
BLOCKS, BLOCK_DEGREE, BRIDGES = 5, 3, 3  # blocks, edges that leave a node within its block, edges to the next block
ANCHORS, HIDDEN, NOISE = 32, 128, 0.1  # nodes that features know distances to and from, units, share of noise


def _dense(nodes: int, rng: np.random.Generator) -> Table:
    lengths = rng.uniform(*DENSE_LENGTHS, (nodes, nodes))
    return np.where(rng.random((nodes, nodes)) < DENSE_EDGES, lengths, 0)


def _sparse(nodes: int, rng: np.random.Generator) -> Table:
    return np.where(rng.random((nodes, nodes)) < SPARSE_DEGREE / nodes, 1.0, 0)


def _blocks(nodes: int, rng: np.random.Generator) -> Table:
    block = np.arange(nodes) * BLOCKS // nodes
    inside = block[:, None] == block
    edges = inside & (rng.random((nodes, nodes)) < BLOCK_DEGREE * BLOCKS / nodes)
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


def anchor_features(distances: Table, size: int, discount: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """(nodes, size): a fixed random network of the discounted distances to and from some nodes, with noise.

    So a feature tells where its node lies, but no distance can be read off it.
    """
    anchors = rng.choice(len(distances), min(ANCHORS, len(distances)), replace=False)
    known = discount ** np.concatenate([distances[:, anchors], distances[anchors].T], axis=1)
    hidden = np.tanh(_standardised(known) @ rng.normal(size=(known.shape[1], HIDDEN)) / np.sqrt(known.shape[1]))
    made = _standardised(hidden @ rng.normal(size=(HIDDEN, size)))
    return _standardised(made + NOISE * rng.normal(size=made.shape)).astype(np.float32)


def _standardised(table: Table) -> Table:
    deviation = table.std(0)
    made: Table = (table - table.mean(0)) / np.where(deviation > 1e-12, deviation, 1)
    return made
