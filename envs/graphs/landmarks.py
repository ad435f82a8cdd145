"""Exact distances of a large graph for pairs with a landmark: one breadth-first search from it, one towards it."""

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

FAR = np.uint16(2**16 - 1)  # stands for no way


class Pairs(NamedTuple):
    """Ordered pairs of nodes with the lengths of the shortest ways between them."""

    nodes: NDArray[np.int32]  # (pairs, 2)
    distances: NDArray[np.float32]  # (pairs,), infinite where there is no way

    def keys(self, num_nodes: int) -> NDArray[np.int64]:
        """(pairs,): a number for each pair, by which pairs are compared."""
        made: NDArray[np.int64] = self.nodes[:, 0].astype(np.int64) * num_nodes + self.nodes[:, 1]
        return made


def steps_from(edges: csr_array, source: int) -> NDArray[np.uint16]:
    """(nodes,): the number of edges on the shortest way from `source`."""
    order, before = breadth_first_order(edges, source)
    place = np.empty(edges.shape[0], np.int64)
    place[order] = np.arange(len(order))
    parent = place[before[order[1:]]]  # never falls: nodes come in the order of their parents
    steps = np.full(edges.shape[0], FAR)
    begin, end, depth = 0, 1, 0  # the places in `order` of the nodes that are `depth` away
    while begin < end:
        if depth >= FAR:
            raise DatasetError(f"a shortest way has {depth:,} edges; at most {FAR - 1:,} can be stored")
        steps[order[begin:end]] = depth
        begin, end, depth = end, 1 + int(np.searchsorted(parent, end)), depth + 1
    return steps


class Searches:
    """The distances from and to some landmarks; pairs with a node of `apart` are never drawn."""

    def __init__(self, graph: Graph, landmarks: Ids, apart: Ids) -> None:
        self.landmarks = landmarks
        self.apart = apart
        self.table = np.empty((2 * len(landmarks), graph.num_nodes), np.uint16)  # from each, then to each
        for row, landmark in enumerate(tqdm(landmarks, unit=" landmarks", disable=None, leave=False)):
            self.table[row] = steps_from(graph.edges, int(landmark))
            self.table[len(landmarks) + row] = steps_from(graph.reversed, int(landmark))

    def sample(self, wanted: Mapping[str, int], unreachable: float | None, rng: np.random.Generator) -> list[Pairs]:
        """For each key so many pairs, all of them different.

        A share of `unreachable` has no way, by default as there are among all. The keys name settings in messages.
        """
        rows = range(len(self.table))
        reached, missed = (np.array([len(self._others(row, far)) for row in rows]) for far in (False, True))
        share = missed.sum() / max(1, reached.sum() + missed.sum()) if unreachable is None else unreachable
        without = np.array([round(share * count) for count in wanted.values()])
        groups = []
        for far, per_row, counts in ((False, reached, list(wanted.values()) - without), (True, missed, without)):
            drawn = self._draw(" + ".join(wanted), far, int(counts.sum()), per_row, rng)
            groups.append([np.split(each, np.cumsum(counts)[:-1]) for each in drawn])
        made = []
        for index, count in enumerate(wanted.values()):
            nodes, distances = (np.concatenate([group[part][index] for group in groups]) for part in (0, 1))
            order = rng.permutation(count)
            made.append(Pairs(nodes[order], distances[order]))
        return made

    def _others(self, row: int, far: bool) -> Ids:
        """The nodes that make a pair with the landmark of a row, with a way or, if `far`, without."""
        found = (self.table[row] == FAR) == far
        found[self.apart] = False
        if row >= len(self.landmarks):
            found[self.landmarks] = False  # this pair is in that landmark's own row
        return np.flatnonzero(found)

    def _draw(self, key: str, far: bool, wanted: int, per_row: NDArray[np.int64], rng: np.random.Generator) -> Pairs:
        """Pairs in random order."""
        total = int(per_row.sum())
        if wanted > total:
            what = "without a way" if far else "with a way"
            raise DatasetError(
                f"{key}: {wanted:,} {what} are wanted, but these {len(self.landmarks)} landmarks have {total:,}; "
                "take more landmarks, fewer pairs or another share with unreachable=..."
            )
        drawn = np.sort(rng.choice(total, wanted, replace=False))
        borders = np.searchsorted(drawn, np.concatenate([[0], np.cumsum(per_row)]))
        nodes = np.empty((wanted, 2), np.int32)
        steps = np.empty(wanted, np.uint16)
        offset = 0
        for row, (begin, end) in enumerate(pairwise(borders)):
            others = self._others(row, far)[drawn[begin:end] - offset]
            offset += int(per_row[row])
            towards = row >= len(self.landmarks)
            landmark = self.landmarks[row % len(self.landmarks)]
            nodes[begin:end, 0] = others if towards else landmark
            nodes[begin:end, 1] = landmark if towards else others
            steps[begin:end] = self.table[row, others]
        order = rng.permutation(wanted)
        return Pairs(nodes[order], np.where(far, np.inf, steps[order]).astype(np.float32))
