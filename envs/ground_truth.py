"""Exact dynamics and distances of a layout, against which learned distances are scored."""

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from qrl.envs.errors import LayoutError
from qrl.envs.layout import MOVES, Layout, opposite

_ROWS_AT_ONCE = 1024  # scipy returns float64 rows; converting them in parts limits peak memory


class GroundTruth:
    """Transition table, all-pairs distances and tasks of a layout; obtained from `ground_truth(layout)`."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def __repr__(self) -> str:
        return f"GroundTruth({self.layout!r})"

    @cached_property
    def transitions(self) -> NDArray[np.int64]:
        """(states, actions): the next state.

        A move is blocked by a wall, and by a door in its origin or target cell that points against it.
        """
        states = np.arange(len(self.layout.cells))
        table = np.empty((len(states), len(MOVES)), np.int64)
        for action, move in enumerate(MOVES):
            x, y = (self.layout.cells + move).T
            target = self.layout.state_ids[y, x]
            against = self.layout.headings == opposite(action)
            blocked = (target < 0) | against | against[target]
            table[:, action] = np.where(blocked, states, target)
        return table

    @cached_property
    def _graph(self) -> csr_array:
        count, actions = self.transitions.shape
        edges = (np.ones(count * actions, np.int8), (np.repeat(np.arange(count), actions), self.transitions.ravel()))
        return csr_array(edges, shape=(count, count))

    @cached_property
    def distances(self) -> NDArray[np.float32]:
        """(states, states): minimum number of steps from row to column, inf for unreachable pairs."""
        count = len(self.transitions)
        distances = np.empty((count, count), np.float32)
        for first in range(0, count, _ROWS_AT_ONCE):
            rows = np.arange(first, min(first + _ROWS_AT_ONCE, count))
            distances[rows] = shortest_path(self._graph, method="D", unweighted=True, indices=rows)
        return distances

    @property
    def strongly_connected(self) -> bool:
        # Unlike `distances`, this is cheap in large layouts.
        components, _ = connected_components(self._graph, connection="strong")
        return bool(components == 1)

    @cached_property
    def _reachable_goals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number of reachable goals per start, (starts,), and goals with the reachable ones first, (starts, goals)."""
        layout = self.layout
        reachable = np.isfinite(self.distances[np.ix_(layout.starts, layout.goals)])
        counts = reachable.sum(1)
        if not counts.all():
            x, y = layout.cells[layout.starts[counts.argmin()]]
            raise LayoutError(
                f"{layout.name}: no goal can be reached from the start in row {y + 1}, column {x + 1}; "
                "open a path to a goal or mark the cell as floor (.)"
            )
        order = np.argsort(~reachable, axis=1, kind="stable")
        return counts, layout.goals[order]

    def check_tasks(self) -> None:
        """Raise a LayoutError if no goal can be reached from some start."""
        self._reachable_goals  # noqa: B018 - raises on access

    def sample_tasks(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sample starts uniformly from S, and for each a goal uniformly from the reachable G."""
        counts, goals = self._reachable_goals
        start = rng.integers(len(counts), size=count)
        return self.layout.starts[start], goals[start, rng.integers(counts[start])]

    def greedy(self, states: NDArray[np.integer], goals: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(n, actions): mask of the actions on a shortest path from `states` to `goals`."""
        remaining = self.distances[self.transitions[states], goals[:, None]]
        optimal: NDArray[np.bool_] = remaining == remaining.min(1, keepdims=True)
        return optimal


@lru_cache(maxsize=8)
def ground_truth(layout: Layout) -> GroundTruth:
    """The cached `GroundTruth` of a layout, shared by all environments that use it."""
    return GroundTruth(layout)
