"""Exact distances between landmarks and all nodes of a large graph, by breadth-first search in both directions."""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order
from tqdm import tqdm

from qrl.envs.errors import DatasetError
from qrl.envs.graphs.graph import Graph, Ids

FAR = np.uint16(2**16 - 1)  # marks unreachable nodes


class Pairs(NamedTuple):
    """Ordered pairs of nodes and their shortest-path distances."""

    nodes: NDArray[np.int32]  # (pairs, 2)
    distances: NDArray[np.float32]  # (pairs,), infinite for unreachable pairs

    def keys(self, num_nodes: int) -> NDArray[np.int64]:
        """(pairs,): one unique integer per ordered pair."""
        keys: NDArray[np.int64] = self.nodes[:, 0].astype(np.int64) * num_nodes + self.nodes[:, 1]
        return keys


def steps_from(edges: csr_array, source: int) -> NDArray[np.uint16]:
    """(nodes,): number of edges on a shortest path from `source`, FAR for unreachable nodes."""
    order, predecessors = breadth_first_order(edges, source)
    rank = np.empty(edges.shape[0], np.int64)
    rank[order] = np.arange(len(order))
    parent = rank[predecessors[order[1:]]]  # non-decreasing: nodes are visited in the order of their parents
    steps = np.full(edges.shape[0], FAR)
    begin, end, depth = 0, 1, 0  # order[begin:end] are the nodes at distance `depth`
    while begin < end:
        if depth >= FAR:
            raise DatasetError(f"a shortest path has {depth:,} edges; at most {FAR - 1:,} are supported")
        steps[order[begin:end]] = depth
        begin, end, depth = end, 1 + int(np.searchsorted(parent, end)), depth + 1
    return steps


class Searches:
    """Distances from and to landmarks; pairs that contain a node of `excluded` are never sampled."""

    def __init__(self, graph: Graph, landmarks: Ids, excluded: Ids) -> None:
        self.landmarks = landmarks
        self.excluded = excluded
        # One row per landmark for the distances from it, then one per landmark for the distances to it.
        self.table = np.empty((2 * len(landmarks), graph.num_nodes), np.uint16)
        for row, landmark in enumerate(tqdm(landmarks, unit=" landmarks", disable=None, leave=False)):
            self.table[row] = steps_from(graph.edges, int(landmark))
            self.table[len(landmarks) + row] = steps_from(graph.reversed, int(landmark))

    def sample(self, counts: Mapping[str, int], unreachable: float | None, rng: np.random.Generator) -> list[Pairs]:
        """Sample disjoint sets of distinct pairs, one of each count.

        `unreachable` is the fraction of unreachable pairs, by default that of all landmark pairs. The keys of `counts`
        name settings in error messages.
        """
        rows = range(len(self.table))
        near, far = (np.array([len(self._partners(row, reachable)) for row in rows]) for reachable in (True, False))
        fraction = far.sum() / max(1, near.sum() + far.sum()) if unreachable is None else unreachable
        far_counts = np.array([round(fraction * count) for count in counts.values()])
        near_counts = list(counts.values()) - far_counts
        groups = []
        for reachable, per_row, sizes in ((True, near, near_counts), (False, far, far_counts)):
            pairs = self._draw(" + ".join(counts), reachable, int(sizes.sum()), per_row, rng)
            groups.append([np.split(array, np.cumsum(sizes)[:-1]) for array in pairs])
        samples = []
        for index, count in enumerate(counts.values()):
            nodes, distances = (np.concatenate([group[part][index] for group in groups]) for part in (0, 1))
            order = rng.permutation(count)
            samples.append(Pairs(nodes[order], distances[order]))
        return samples

    def _partners(self, row: int, reachable: bool) -> Ids:
        """The nodes that form a reachable, or an unreachable, pair with the landmark of a row."""
        mask = (self.table[row] != FAR) == reachable
        mask[self.excluded] = False
        if row >= len(self.landmarks):
            mask[self.landmarks] = False  # already in the row of distances from that landmark
        return np.flatnonzero(mask)

    def _draw(
        self, key: str, reachable: bool, count: int, per_row: NDArray[np.int64], rng: np.random.Generator
    ) -> Pairs:
        """`count` distinct pairs in random order."""
        total = int(per_row.sum())
        if count > total:
            kind = "reachable" if reachable else "unreachable"
            raise DatasetError(
                f"{key}: {count:,} {kind} pairs requested, but these {len(self.landmarks)} landmarks have {total:,}; "
                "use more landmarks, fewer pairs or a different fraction unreachable=..."
            )
        drawn = np.sort(rng.choice(total, count, replace=False))
        borders = np.searchsorted(drawn, np.concatenate([[0], np.cumsum(per_row)]))
        nodes = np.empty((count, 2), np.int32)
        steps = np.empty(count, np.uint16)
        offset = 0
        for row, (begin, end) in enumerate(pairwise(borders)):
            partners = self._partners(row, reachable)[drawn[begin:end] - offset]
            offset += int(per_row[row])
            towards = row >= len(self.landmarks)
            landmark = self.landmarks[row % len(self.landmarks)]
            nodes[begin:end, 0] = partners if towards else landmark
            nodes[begin:end, 1] = landmark if towards else partners
            steps[begin:end] = self.table[row, partners]
        order = rng.permutation(count)
        return Pairs(nodes[order], np.where(reachable, steps[order], np.inf).astype(np.float32))
