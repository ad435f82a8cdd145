"""Batches of transitions with relabelled goals."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qrl.agents.learners.sampler import Sampler
from qrl.agents.learners.settings import GoalSettings
from qrl.agents.planning.empirical_graph import EmpiricalGraph
from qrl.envs.dataset import Dataset

Ids = NDArray[np.int64]
NEAR = 0.03  # fraction of the state just reached among the goals of balanced transitions: it anchors the distances


@dataclass(frozen=True)
class Batch:
    """Transitions (s, a, s') with goals (g, a_g); fields hold (batch,) ids of states or actions.

    Where goals are states, goal actions are carried along and ignored.
    hindsight: the steps from (s, a) to the goal along the same trajectory; infinite where the goal is not on it.
    """

    states: Tensor
    actions: Tensor
    next_states: Tensor
    goals: Tensor
    goal_actions: Tensor
    hindsight: Tensor

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(tensor.to(device) for tensor in vars(self).values()))


class GoalSampler(Sampler):
    """Draws batches from a dataset. A "step" below is an index into `dataset.states`."""

    def __init__(self, dataset: Dataset, settings: GoalSettings, seed: int) -> None:
        super().__init__(seed)
        self.settings = settings
        self.num_actions = dataset.header.spaces.num_actions
        self.states = dataset.states.astype(np.int64)
        self.sources = dataset.sources
        # For each transition, the last step of its trajectory.
        self.ends = np.repeat(dataset.ends, dataset.lengths)
        # The action taken at each step; -1 at the end of a trajectory.
        self.actions = np.full(len(self.states), -1)
        self.actions[self.sources] = dataset.actions
        # Where no state repeats, all transitions are distinct, and random goals alone would be left of balanced ones.
        repeated = settings.balanced > 0 and len(self.visited) < len(self.states)
        self.balanced = settings.balanced if repeated else 0
        self._balanced_rng = self.generator("balanced") if self.balanced > 0 else None
        self._component = EmpiricalGraph(dataset).components if settings.connected else None

    def sample(self, size: int) -> Batch:
        """`size` transitions with replacement, each with a goal; the balanced fraction comes last."""
        balanced = round(size * self.balanced)
        drawn = self._sample(size - balanced)
        if balanced:
            drawn = [np.concatenate(pair) for pair in zip(drawn, self._sample_balanced(balanced), strict=True)]
        return Batch(*map(torch.from_numpy, drawn))

    def _sample(self, size: int) -> list[NDArray[np.generic]]:
        """Uniform over all transitions: the fields of a `Batch`."""
        transitions = self.rng.integers(len(self.sources), size=size)
        steps, ends = self.sources[transitions], self.ends[transitions]
        goals = self._goal_steps(steps, ends)
        later = (goals >= steps) & (goals <= ends)
        hindsight = np.where(later, goals - steps, np.inf).astype(np.float32)
        goal_actions = self._actions_at(goals)
        return [
            self.states[steps],
            self.actions[steps],
            self.states[steps + 1],
            self.states[goals],
            goal_actions,
            hindsight,
        ]

    def _sample_balanced(self, size: int) -> list[NDArray[np.generic]]:
        """Uniform over the distinct transitions; goals that are not current are uniform over the distinct pairs.

        A distinct transition is on no one trajectory: of what is later on it, only the state after it is a goal.
        """
        assert self._balanced_rng is not None
        rng, (states, actions, next_states) = self._balanced_rng, self.distinct
        chosen, random = rng.integers(len(states), size=(2, size))
        if self._component is not None:
            random = self._distinct_groups.draw(self._component[states[chosen]], rng)
        kind, any_action = rng.random(size), rng.integers(self.num_actions, size=size)
        near = kind < self.settings.current + NEAR
        current = kind < self.settings.current
        goals = np.where(near, next_states[chosen], states[random])
        goal_actions = np.where(near, any_action, actions[random])
        return [
            states[chosen],
            actions[chosen],
            next_states[chosen],
            np.where(current, states[chosen], goals),
            np.where(current, actions[chosen], goal_actions),
            np.where(current, 0, np.where(near, 1, np.inf)).astype(np.float32),
        ]

    @cached_property
    def distinct(self) -> tuple[Ids, Ids, Ids]:
        """The distinct transitions of the data: states, actions and next states."""
        steps = self.sources
        states, actions, next_states = np.unique(
            [self.states[steps], self.actions[steps], self.states[steps + 1]], axis=1
        )
        return states, actions, next_states

    @cached_property
    def _step_groups(self) -> "_Groups":
        assert self._component is not None
        return _Groups(self._component[self.states])

    @cached_property
    def _distinct_groups(self) -> "_Groups":
        assert self._component is not None
        return _Groups(self._component[self.distinct[0]])

    def sample_constraints(self, size: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Distinct transitions, drawn uniformly: their ids, states, actions and next states, and random actions there.

        Where a transition leads back to its own state, these are other actions than its own, if there are any: from a
        pair to itself it is 0 steps.
        """
        ids = self.rng.integers(len(self.distinct[0]), size=size)
        states, actions, next_states = (part[ids] for part in self.distinct)
        any_action = self.rng.integers(self.num_actions, size=size)
        other_action = (actions + 1 + self.rng.integers(max(self.num_actions - 1, 1), size=size)) % self.num_actions
        next_actions = np.where(states == next_states, other_action, any_action)
        as_tensor = torch.from_numpy
        return as_tensor(ids), as_tensor(states), as_tensor(actions), as_tensor(next_states), as_tensor(next_actions)

    def sample_any_pairs(self, size: int) -> tuple[Tensor, Tensor]:
        """States of the data, uniform over the distinct ones, with any actions, also ones that were never tried."""
        states = self.visited[self.rng.integers(len(self.visited), size=size)]
        return torch.from_numpy(states), torch.from_numpy(self.rng.integers(self.num_actions, size=size))

    @cached_property
    def visited(self) -> Ids:
        """The distinct states of the data."""
        return np.unique(self.states)

    def sample_pairs(self, size: int) -> tuple[Tensor, Tensor]:
        """`size` random state-action pairs of the dataset: states and actions."""
        steps = self.rng.integers(len(self.states), size=size)
        return torch.from_numpy(self.states[steps]), torch.from_numpy(self._actions_at(steps))

    def _goal_steps(self, steps: Ids, ends: Ids) -> Ids:
        size = len(steps)
        kind = self.rng.random(size)
        remaining = ends - steps  # at least 1
        if self.settings.offset == "uniform":
            offsets = 1 + (self.rng.random(size) * remaining).astype(np.int64)
        else:
            offsets = np.minimum(self.rng.geometric(1 - self.settings.geometric_discount, size), remaining)
        if self._component is None:
            random = self.rng.integers(len(self.states), size=size)
        else:
            random = self._step_groups.draw(self._component[self.states[steps]], self.rng)
        same_trajectory = np.where(kind < self.settings.current, steps, steps + offsets)
        return np.where(kind < self.settings.current + self.settings.future, same_trajectory, random)

    def _actions_at(self, steps: Ids) -> Ids:
        """The actions taken at `steps`; a uniformly random one where a trajectory ends."""
        actions = self.actions[steps]
        return np.where(actions < 0, self.rng.integers(self.num_actions, size=len(steps)), actions)


class _Groups:
    """Items (n,) with a label each, to draw from those of one label."""

    def __init__(self, labels: Ids) -> None:
        self._members = np.argsort(labels, kind="stable")
        self._counts = np.bincount(labels)
        self._first = np.cumsum(self._counts) - self._counts

    def draw(self, labels: Ids, rng: np.random.Generator) -> Ids:
        """For each label one of its items, uniformly."""
        drawn: Ids = self._members[self._first[labels] + rng.integers(self._counts[labels])]
        return drawn
