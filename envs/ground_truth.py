"""The exact dynamics and distances of a layout: what learned distances are scored against."""

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from qrl.envs.errors import LayoutError
from qrl.envs.layout import MOVES, Layout, opposite

_ROWS_AT_ONCE = 1024  # scipy returns float64 rows: converting them in parts keeps the peak of memory low


class GroundTruth:
    """Transition table, all-pairs distances and tasks of a layout; get one by `ground_truth(layout)`."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def __repr__(self) -> str:
        return f"GroundTruth({self.layout!r})"

    @cached_property
    def transitions(self) -> NDArray[np.int64]:
        """(states, actions): the state that an action leads to.

        A move is blocked by a wall and by a door, at either end of it, that points against it.
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
    def distances(self) -> NDArray[np.float32]:
        """(states, states): the least number of steps from row to column, inf where there is no way."""
        count, actions = self.transitions.shape
        edges = (np.ones(count * actions, np.int8), (np.repeat(np.arange(count), actions), self.transitions.ravel()))
        graph = csr_array(edges, shape=(count, count))
        distances = np.empty((count, count), np.float32)
        for first in range(0, count, _ROWS_AT_ONCE):
            rows = np.arange(first, min(first + _ROWS_AT_ONCE, count))
            distances[rows] = shortest_path(graph, method="D", unweighted=True, indices=rows)
        return distances

    @property
    def strongly_connected(self) -> bool:
        return bool(np.isfinite(self.distances).all())

    @cached_property
    def _reachable_goals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many goals each start can reach, and which: (starts,) and (starts, goals) with those first."""
        layout = self.layout
        reachable = np.isfinite(self.distances[np.ix_(layout.starts, layout.goals)])
        counts = reachable.sum(1)
        if not counts.all():
            x, y = layout.cells[layout.starts[counts.argmin()]]
            raise LayoutError(
                f"{layout.name}: no goal can be reached from the start in row {y + 1}, column {x + 1}; "
                "open a way to a goal or mark the cell as floor (.)"
            )
        order = np.argsort(~reachable, axis=1, kind="stable")
        return counts, layout.goals[order]

    def check_tasks(self) -> None:
        """Refuse a layout with a start from which no goal can be reached."""
        self._reachable_goals  # noqa: B018 - computing it checks it

    def sample_tasks(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts uniform over S, and for each a goal uniform over the G that can be reached from it."""
        counts, goals = self._reachable_goals
        start = rng.integers(len(counts), size=count)
        return self.layout.starts[start], goals[start, rng.integers(counts[start])]

    def greedy(self, states: NDArray[np.integer], goals: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(n, actions): which actions lie on a shortest way from `states` to `goals`."""
        ahead = self.distances[self.transitions[states], goals[:, None]]
        return ahead == ahead.min(1, keepdims=True)


@lru_cache(maxsize=8)
def ground_truth(layout: Layout) -> GroundTruth:
    """The one shared `GroundTruth` of a layout, so that many environments compute it once."""
    return GroundTruth(layout)
