"""Exact distances and tasks of a world, against which learned distances are scored."""

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path

from qrl.envs.errors import LayoutError, WorldError
from qrl.envs.layout import Layout
from qrl.envs.value_iteration import best_values, steps_of, values_of
from qrl.envs.world import AnyIds, Ids, World

MAX_TABLE = 4000  # states up to which all their pairs are tabulated without being asked for: 64 MB
_ROWS_AT_ONCE = 1024  # scipy returns float64 rows; converting them in parts limits peak memory
_TIE = 1e-4  # steps within which actions of a stochastic world are equally good; hop counts differ by 1

Distances = NDArray[np.float32]


class _Tasks(NamedTuple):
    """Of each start: its group, the number of goals it can be given, and its own index among those it reaches.

    goals: of each group of starts that reach the same goals, these goals.
    """

    group: Ids
    counts: Ids
    own: Ids
    goals: list[Ids]


class GroundTruth:
    """Distances and tasks of a world or of a layout; obtained from `ground_truth`.

    The distance d(s, g) is the minimum number of steps; in a stochastic world log_gamma max_pi E[gamma^T], with T the
    number of steps to the goal, which is a quasimetric too and the same if nothing is random.
    """

    def __init__(self, source: World | Layout) -> None:
        self.world = source if isinstance(source, World) else source.world

    def __repr__(self) -> str:
        return f"GroundTruth({self.world!r})"

    @property
    def layout(self) -> Layout:
        """The layout of the world; an error for a world that has none."""
        if self.world.layout is None:
            raise WorldError(f"world {self.world.name}: it has no layout")
        return self.world.layout

    @property
    def transitions(self) -> Ids:
        """The table of the world."""
        transitions: Ids = self.world.transitions
        return transitions

    @cached_property
    def outcomes(self) -> csr_array:
        """(states * actions, states): the probability of each next state."""
        world = self.world
        count, actions = world.num_states, world.num_actions
        following = world.transitions.reshape(count * actions, -1)
        probabilities = np.ones(following.shape) if world.deterministic else world.probabilities
        rows = np.repeat(np.arange(count * actions), following.shape[1])
        return csr_array((probabilities.ravel(), (rows, following.ravel())), shape=(count * actions, count))

    @cached_property
    def graph(self) -> csr_array:
        """Every transition that can happen, as an edge of length 1."""
        count, actions = self.world.num_states, self.world.num_actions
        states = np.repeat(np.arange(count), actions * (self.transitions.size // (count * actions)))
        possible = slice(None) if self.world.deterministic else self.world.probabilities.ravel() > 0
        edges = states[possible], self.transitions.ravel()[possible]
        return csr_array((np.ones(len(edges[0]), np.int32), edges), shape=(count, count))

    @cached_property
    def _reversed_graph(self) -> csr_array:
        return self.graph.T.tocsr()

    # Distances

    @cached_property
    def distances(self) -> Distances:
        """(states, states): from row to column, inf for unreachable pairs. Quadratic in memory."""
        return self._from_all() if self.world.deterministic else self._values_to(np.arange(self.world.num_states))

    def distances_to(self, goals: AnyIds) -> Distances:
        """(states, goals): from every state to some goals; in a large or stochastic world, no others are computed."""
        if "distances" in vars(self) or (self.tabulated and self.world.deterministic):
            return self.distances[:, goals]
        if not self.world.deterministic:
            return self._kept_values_to(goals) if self.tabulated else self._values_to(goals)
        columns = np.empty((self.world.num_states, len(goals)), np.float32)
        for first in range(0, len(goals), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            columns[:, part] = shortest_path(self._reversed_graph, method="D", unweighted=True, indices=goals[part]).T
        return columns

    def between(self, states: AnyIds, goals: AnyIds) -> Distances:
        """(pairs,): of each state and its goal."""
        targets, columns = np.unique(goals, return_inverse=True)
        distances: Distances = self.distances_to(targets)[states, columns]
        return distances

    @property
    def tabulated(self) -> bool:
        """Whether all pairs are tabulated: in a large world, only once somebody has asked for `distances`."""
        return self.world.num_states <= MAX_TABLE or "distances" in vars(self)

    def _from_all(self) -> Distances:
        count = self.world.num_states
        distances = np.empty((count, count), np.float32)
        for first in range(0, count, _ROWS_AT_ONCE):
            rows = np.arange(first, min(first + _ROWS_AT_ONCE, count))
            distances[rows] = shortest_path(self.graph, method="D", unweighted=True, indices=rows)
        return distances

    def _values_to(self, goals: AnyIds) -> Distances:
        discount = self.world.discount
        return steps_of(best_values(self.outcomes, self.world.num_actions, goals, discount), discount)

    @cached_property
    def _columns(self) -> dict[int, Distances]:
        """Distances to single goals of a small stochastic world: all pairs take many times as long as its goals."""
        return {}

    def _kept_values_to(self, goals: AnyIds) -> Distances:
        new = np.setdiff1d(goals, list(self._columns))
        self._columns.update(zip(new.tolist(), self._values_to(new).T, strict=True))
        columns = [self._columns[goal] for goal in goals.tolist()]
        return np.array(columns, np.float32).reshape(len(goals), self.world.num_states).T

    def after_action(self, distances: Distances) -> Distances:
        """(states, actions, goals): what remains after each action, by the `distances` (states, goals) to goals."""
        world = self.world
        if world.deterministic:
            remaining: Distances = distances[world.transitions]
            return remaining
        values = self.outcomes @ values_of(distances, world.discount)
        return steps_of(values.reshape(world.num_states, world.num_actions, -1), world.discount)

    def expected_after(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(states, goals, actions): the mean of `values` (states, goals) after each action."""
        world = self.world
        expected: NDArray[np.float64] = (self.outcomes @ values).reshape(world.num_states, world.num_actions, -1)
        return expected.transpose(0, 2, 1)

    def greedy(self, states: AnyIds, goals: AnyIds, distances: Distances | None = None) -> NDArray[np.bool_]:
        """(n, actions): mask of the best actions from `states` to `goals`.

        distances: of `distances_to`, if they have been computed; `goals` then are its columns.
        """
        table, world = self.distances if distances is None else distances, self.world
        following = world.transitions[states]
        if world.deterministic:
            remaining = table[following, goals[:, None]]
        else:
            values = values_of(table[following, goals[:, None, None]], world.discount)
            remaining = steps_of((world.probabilities[states] * values).sum(-1), world.discount)
        return best_actions(remaining)

    def reaching(self, actions: Ids, goal: int) -> NDArray[np.bool_]:
        """(states,): from which states a policy, an action for every state, can reach the goal."""
        count = self.world.num_states
        taken = self.outcomes[np.arange(count) * self.world.num_actions + actions]
        taken.eliminate_zeros()
        reached = np.zeros(count, bool)
        reached[breadth_first_order(taken.T.tocsr(), goal, return_predecessors=False)] = True
        return reached

    # Tasks

    @property
    def strongly_connected(self) -> bool:
        # Unlike `distances`, this is cheap in large worlds.
        return bool(self._components[0] == 1)

    @cached_property
    def _components(self) -> tuple[int, NDArray[np.int32]]:
        count, labels = connected_components(self.graph, connection="strong")
        return int(count), labels

    @cached_property
    def _reached_goals(self) -> dict[int, Ids]:
        """The goals that the states of a strongly connected component reach, for those that were asked for."""
        return {}

    def goals_from(self, state: int) -> Ids:
        """The goals that a state reaches, itself included if it is one."""
        component = int(self._components[1][state])
        if component not in self._reached_goals:
            reached = breadth_first_order(self.graph, state, return_predecessors=False)
            self._reached_goals[component] = self.world.goals[np.isin(self.world.goals, reached)]
        return self._reached_goals[component]

    @cached_property
    def _tasks(self) -> _Tasks:
        world = self.world
        _, members, group = np.unique(self._components[1][world.starts], return_index=True, return_inverse=True)
        goals = [self.goals_from(start) for start in world.starts[members]]
        own = np.array([_index(goals[part], start) for part, start in zip(group, world.starts, strict=True)])
        counts = np.array([len(part) for part in goals])[group] - (own >= 0)
        return _Tasks(group, counts, np.where(own < 0, world.num_states, own), goals)

    def _no_goal(self, start: int) -> LayoutError | WorldError:
        layout = self.world.layout
        if layout is None:
            return WorldError(
                f"world {self.world.name}: no goal can be reached from the start {start}; add a path to a goal, or "
                "leave it out of the starts"
            )
        x, y = layout.cells[start]
        return LayoutError(
            f"{layout.name}: no goal can be reached from the start in row {y + 1}, column {x + 1}; "
            "open a path to a goal or mark the cell as floor (.)"
        )

    @property
    def all_reachable(self) -> bool:
        """Whether every start reaches every goal."""
        return all(len(goals) == len(self.world.goals) for goals in self._tasks.goals)

    @property
    def able_starts(self) -> Ids:
        """The starts from which another goal can be reached."""
        starts: Ids = self.world.starts[self._tasks.counts > 0]
        return starts

    def check_tasks(self) -> None:
        """Raise a LayoutError or a WorldError if no goal can be reached from some start."""
        counts = self._tasks.counts
        if not counts.all():
            raise self._no_goal(int(self.world.starts[counts.argmin()]))

    def sample_tasks(self, rng: np.random.Generator, count: int) -> tuple[Ids, Ids]:
        """Sample starts uniformly, and for each a goal uniformly from the other goals that it reaches."""
        self.check_tasks()
        tasks = self._tasks
        start = rng.integers(len(tasks.counts), size=count)
        choice = rng.integers(tasks.counts[start])
        choice += choice >= tasks.own[start]  # never the start itself
        goals = np.empty(count, np.int64)
        for group in np.unique(tasks.group[start]):
            members = tasks.group[start] == group
            goals[members] = tasks.goals[group][choice[members]]
        starts: Ids = self.world.starts[start]
        return starts, goals

    def sample_goals(self, rng: np.random.Generator, states: Ids) -> Ids:
        """For each state another goal that it reaches, uniformly; where there is none, the state itself."""
        goals = states.copy()
        for index, state in enumerate(states):
            others = self.goals_from(int(state))
            others = others[others != state]
            if len(others):
                goals[index] = others[rng.integers(len(others))]
        return goals

    def all_tasks(self) -> tuple[Ids, Ids]:
        """Every start with every other goal that is reachable from it."""
        tasks = self._tasks
        goals = [tasks.goals[group] for group in tasks.group]
        starts = np.repeat(self.world.starts, [len(part) for part in goals])
        targets = np.concatenate(goals)
        return starts[starts != targets], targets[starts != targets]


def best_actions(remaining: Distances) -> NDArray[np.bool_]:
    """(..., actions): mask of those after which the fewest steps remain, up to rounding in a stochastic world."""
    best: NDArray[np.bool_] = remaining <= remaining.min(-1, keepdims=True) + np.float32(_TIE)
    return best


def _index(states: Ids, state: int) -> int:
    """The index of a state in a list of states, or -1."""
    found = np.flatnonzero(states == state)
    return int(found[0]) if len(found) else -1


def ground_truth(source: World | Layout) -> GroundTruth:
    """The cached `GroundTruth` of a world or a layout, shared by all that use an equal one."""
    world = source if isinstance(source, World) else source.world
    return _cached(world, world.layout)


@lru_cache(maxsize=8)
def _cached(world: World, layout: Layout | None) -> GroundTruth:
    """The layout is part of the key, because it does not matter for the equality of worlds."""
    return GroundTruth(world)
