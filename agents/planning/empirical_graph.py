"""The data as a graph: shortest paths over the observed transitions, without any generalization."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import MAX_TABLE
from qrl.envs.world import AnyIds, Ids

Steps = NDArray[np.float32]


class EmpiricalGraph:
    """States are those of the dataset. Paths never leave a component: states that transitions connect, either way.

    Data of many separate mazes has many small components, and needs no table of all pairs.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.num_states, self.num_actions = len(dataset.observations), dataset.header.spaces.num_actions
        before, action, after = np.unique(
            [dataset.states[dataset.sources], dataset.actions, dataset.states[dataset.sources + 1]], axis=1
        ).astype(np.int64)
        self.transitions: tuple[Ids, Ids, Ids] = before, action, after

    @cached_property
    def components(self) -> Ids:
        """(states,): the component of each state."""
        before, _, after = self.transitions
        edges = coo_array((np.ones(len(before), np.int8), (before, after)), shape=(self.num_states,) * 2)
        labels: Ids = connected_components(edges, connection="weak")[1].astype(np.int64)
        return labels

    @property
    def fits(self) -> bool:
        """Whether there are few enough pairs of connected states for a table of them."""
        return int((np.bincount(self.components) ** 2).sum()) <= MAX_TABLE**2

    def between(self, states: AnyIds, goals: AnyIds) -> Steps:
        """(pairs, actions): the steps that remain after each action; infinite if it was not tried or leads nowhere.

        States -1 are unknown: nothing leads from or to them.
        """
        tables, first, sizes, rank = self._tables
        component = self.components[states]
        entries = first[component] + rank[states] * sizes[component] + rank[goals]
        connected = (component == self.components[goals]) & (states >= 0) & (goals >= 0)
        remaining: Steps = np.where(connected[:, None], tables[np.where(connected, entries, 0)], np.float32(np.inf))
        return remaining

    @cached_property
    def _tables(self) -> tuple[Steps, Ids, Ids, Ids]:
        """The tables of all components, row by row; the first entry and the size of each; the rank of a state in its.

        An entry has the steps to a goal after each action.
        """
        order = np.argsort(self.components, kind="stable")
        sizes = np.bincount(self.components)
        begin = np.cumsum(sizes) - sizes
        rank = np.empty(self.num_states, np.int64)
        rank[order] = np.arange(self.num_states) - begin[self.components[order]]
        before, action, after = self.transitions
        by_component = np.argsort(self.components[before], kind="stable")
        ends = np.cumsum(np.bincount(self.components[before], minlength=len(sizes)))
        tables = []
        for size, part in zip(sizes, np.split(by_component, ends[:-1]), strict=True):
            table = steps_to_all(rank[before[part]], action[part], rank[after[part]], int(size), self.num_actions)
            tables.append(table.reshape(-1, self.num_actions))
        return np.concatenate(tables), np.cumsum(sizes**2) - sizes**2, sizes, rank


class Memory(EmpiricalGraph):
    """The same graph for the states of another world, recognized by their observations; by default for its own."""

    def __init__(self, dataset: Dataset, observations: NDArray[np.float32] | None = None) -> None:
        super().__init__(dataset)
        self.ids: Ids = np.arange(self.num_states)  # (states,): of the world in the data, -1 where it lacks them
        if observations is not None:
            known = {row.tobytes(): state for state, row in enumerate(dataset.observations)}
            self.ids = np.array([known.get(row.tobytes(), -1) for row in observations], np.int64)

    @property
    def empty(self) -> bool:
        """Whether it contains no state of the world."""
        return bool((self.ids < 0).all())

    def steps(self, states: AnyIds, goals: AnyIds) -> Steps:
        """As `between`, for states of the world."""
        return self.between(self.ids[states], self.ids[goals])

    def all_steps(self) -> Steps:
        """(states, goals, actions): as `steps`, for all pairs of states of the world."""
        count = len(self.ids)
        if np.array_equal(self.ids, np.arange(self.num_states)):
            return steps_to_all(*self.transitions, count, self.num_actions)
        states, goals = np.indices((count, count)).reshape(2, -1)
        return self.steps(states, goals).reshape(count, count, -1)


def empirical_steps(dataset: Dataset) -> Steps:
    """(states, goals, actions): of all pairs of states, in one table."""
    return Memory(dataset).all_steps()


def steps_to_all(before: Ids, action: Ids, after: Ids, count: int, num_actions: int) -> Steps:
    """(states, goals, actions): the steps that remain after each action; infinite for one that was not tried."""
    graph = coo_array((np.ones(len(before), np.int32), (before, after)), shape=(count, count)).tocsr()
    distances = shortest_path(graph, method="D", unweighted=True).astype(np.float32)
    steps = np.full((count, num_actions, count), np.inf, np.float32)
    # In a stochastic world an action may lead to several states: the graph assumes the best of them.
    np.minimum.at(steps, (before, action), distances[after])
    return steps.transpose(0, 2, 1)
