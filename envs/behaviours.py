"""What collects data: policies that act for a block of episodes at once, each with its own starts and goals."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from qrl.envs.errors import WorldError
from qrl.envs.ground_truth import Distances, GroundTruth
from qrl.envs.world import Ids

if TYPE_CHECKING:
    from qrl.envs.collector import CollectorSettings

NO_GOAL = -1
_MAX_PAIRS = 2**28  # states and goals whose distances are held at once: 1 GB
_PAIRS_AT_ONCE = 2**22  # of starts and states for which float64 arrays are allocated


class Behaviour(ABC):
    """`states` and `goals` (episodes,) are where its episodes start and lead to; an episode is an index into them."""

    states: Ids
    goals: Ids  # as recorded: `NO_GOAL` for episodes without one goal

    def __init__(self, truth: GroundTruth, settings: "CollectorSettings", rng: np.random.Generator, count: int) -> None:
        self.truth = truth
        self.settings = settings
        self.rng = rng
        self.count = count
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Set `states` and `goals`."""

    @abstractmethod
    def act(self, step: int, episodes: Ids, states: Ids) -> Ids:
        """An action for each of the episodes that go on, which are in these states."""

    def arrive(self, episodes: Ids, states: Ids) -> NDArray[np.bool_]:
        """Which of the episodes are over, now that they are in these states."""
        return np.zeros(len(episodes), bool)


class EpsilonGreedy(Behaviour):
    """From a start to a goal: along a shortest path, but for random actions with probability epsilon."""

    def begin(self) -> None:
        self.states, self.goals = self.truth.sample_tasks(self.rng, self.count)
        self.aim()

    def aim(self) -> None:
        self._targets, self._column = np.unique(self.goals, return_inverse=True)
        self._distances: Distances = self.truth.distances_to(self._targets)

    def act(self, step: int, episodes: Ids, states: Ids) -> Ids:
        greedy = self.truth.greedy(states, self._column[episodes], self._distances)
        explore = self.rng.random(len(episodes)) < self.settings.epsilon
        # The argmax of random scores is uniform over the allowed actions.
        scores = self.rng.random(greedy.shape)
        actions: Ids = np.where(greedy | explore[:, None], scores, -1).argmax(1)
        return actions

    def arrive(self, episodes: Ids, states: Ids) -> NDArray[np.bool_]:
        return np.equal(states, self._targets[self._column[episodes]])


class Navigate(EpsilonGreedy):
    """As epsilon-greedy, with a new goal on every arrival: long episodes without one goal."""

    def begin(self) -> None:
        self.states, first = self.truth.sample_tasks(self.rng, self.count)
        self.goals = np.full(self.count, NO_GOAL)
        world = self.truth.world
        if world.num_states * len(world.goals) > _MAX_PAIRS:
            raise WorldError(
                f"policy=navigate: {world.name} has {world.num_states:,} states and {len(world.goals):,} goals, more "
                f"than {_MAX_PAIRS:,} pairs, whose distances it needs; choose another policy or fewer goals"
            )
        self._targets = np.sort(world.goals)
        self._distances = self.truth.distances_to(self._targets)
        self._column = np.searchsorted(self._targets, first)

    def arrive(self, episodes: Ids, states: Ids) -> NDArray[np.bool_]:
        arrived = super().arrive(episodes, states)
        goals = self.truth.sample_goals(self.rng, states[arrived])
        self._column[episodes[arrived]] = np.searchsorted(self._targets, goals)
        return np.zeros(len(episodes), bool)


class Stitch(EpsilonGreedy):
    """As epsilon-greedy, from any state to one that is exactly `distance` steps away: short episodes."""

    def begin(self) -> None:
        steps, world = self.settings.distance, self.truth.world
        self.states, self.goals = np.empty(self.count, np.int64), np.empty(self.count, np.int64)
        waiting = np.arange(self.count)
        for _ in range(100):  # a state without another at this distance is drawn again
            starts = self.rng.integers(world.num_states, size=len(waiting))
            goals = self._goals_at(steps, starts)
            found = goals != NO_GOAL
            self.states[waiting[found]], self.goals[waiting[found]] = starts[found], goals[found]
            waiting = waiting[~found]
            if not len(waiting):
                self.aim()
                return
        raise WorldError(
            f"policy=stitch: hardly any state of {world.name} has another one exactly {steps} steps away; choose "
            "another distance"
        )

    def _goals_at(self, steps: int, starts: Ids) -> Ids:
        """Of each start, a random state exactly so many steps away; `NO_GOAL` if there is none."""
        goals = np.full(len(starts), NO_GOAL)
        size = max(1, _PAIRS_AT_ONCE // self.truth.world.num_states)
        for first in range(0, len(starts), size):
            part = slice(first, first + size)
            exactly = dijkstra(self.truth.graph, unweighted=True, indices=starts[part], limit=steps) == steps
            chosen = np.where(exactly, self.rng.random(exactly.shape), -1).argmax(1)
            goals[part] = np.where(exactly.any(1), chosen, NO_GOAL)
        return goals


class Explore(Behaviour):
    """A random action that is held for some steps, then another one; no goal."""

    def begin(self) -> None:
        self.states = self.truth.world.starts[self.rng.integers(len(self.truth.world.starts), size=self.count)]
        self.goals = np.full(self.count, NO_GOAL)

    def act(self, step: int, episodes: Ids, states: Ids) -> Ids:
        if step % self.settings.hold == 0:
            self._held = self.rng.integers(self.truth.world.num_actions, size=self.count)
        return self._held[episodes]


BEHAVIOURS: dict[str, type[Behaviour]] = {
    "epsilon-greedy": EpsilonGreedy,
    "navigate": Navigate,
    "stitch": Stitch,
    "explore": Explore,
}
