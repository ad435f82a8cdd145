"""Slow reference searches for the tests of graphs."""

from collections import deque

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from qrl.envs.graphs.graph import Graph

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


def graph_of(edges: list[tuple[int, int]]) -> Graph:
    return Graph.from_edges(*np.array(edges).T)


def breadth_first(graph: Graph, source: int) -> list[float]:
    """Number of edges from `source` to every node, by textbook breadth-first search."""
    steps = [float("inf")] * graph.num_nodes
    steps[source] = 0
    queue = deque([source])
    while queue:
        node = queue.popleft()
        for neighbor in graph.edges.indices[graph.edges.indptr[node] : graph.edges.indptr[node + 1]]:
            if steps[neighbor] == float("inf"):
                steps[neighbor] = steps[node] + 1
                queue.append(neighbor)
    return steps


def floyd_warshall(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """All-pairs distances of a matrix of edge lengths, where 0 is no edge."""
    distances = np.where(lengths > 0, lengths, np.inf)
    np.fill_diagonal(distances, 0)
    for middle in range(len(distances)):
        distances = np.minimum(distances, distances[:, middle, None] + distances[middle])
    return distances
