"""Batches of transitions with relabelled goals."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qrl.agents.learners.sampler import Sampler
from qrl.agents.learners.settings import GoalSettings
from qrl.envs.dataset import Dataset


@dataclass(frozen=True)
class Batch:
    """Transitions (s, a, s') with goals (g, a_g); every field holds (batch,) ids of states or actions.

    Where goals are states, goal actions are carried along and not looked at.
    """

    states: Tensor
    actions: Tensor
    next_states: Tensor
    goals: Tensor
    goal_actions: Tensor


class GoalSampler(Sampler):
    """Draws batches from a dataset."""

    def __init__(self, dataset: Dataset, settings: GoalSettings, seed: int) -> None:
        super().__init__(seed)
        self.settings = settings
        self.num_actions = dataset.header.spaces.num_actions
        self.states = dataset.states.astype(np.int64)
        self.sources = dataset.sources
        # Where the trajectory of each transition ends: the place of its last state.
        self.ends = np.repeat(dataset.ends, dataset.lengths)
        # The action taken at each place; the last state of a trajectory has none.
        self.actions = np.full(len(self.states), -1)
        self.actions[self.sources] = dataset.actions

    def sample(self, size: int) -> Batch:
        """`size` transitions, uniform with replacement, each with a goal."""
        transition = self.rng.integers(len(self.sources), size=size)
        place = self.sources[transition]
        goal = self._goal_places(place, self.ends[transition])
        return Batch(
            states=torch.from_numpy(self.states[place]),
            actions=torch.from_numpy(self.actions[place]),
            next_states=torch.from_numpy(self.states[place + 1]),
            goals=torch.from_numpy(self.states[goal]),
            goal_actions=torch.from_numpy(self._actions_at(goal)),
        )

    def sample_pairs(self, size: int) -> tuple[Tensor, Tensor]:
        """`size` random state-action pairs of the dataset: states and actions."""
        place = self.rng.integers(len(self.states), size=size)
        return torch.from_numpy(self.states[place]), torch.from_numpy(self._actions_at(place))

    def _goal_places(self, place: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
        size = len(place)
        kind = self.rng.random(size)
        left = end - place  # at least 1
        if self.settings.offset == "uniform":
            ahead = 1 + (self.rng.random(size) * left).astype(np.int64)
        else:
            ahead = np.minimum(self.rng.geometric(1 - self.settings.geometric_discount, size), left)
        anywhere = self.rng.integers(len(self.states), size=size)
        later = np.where(kind < self.settings.current, place, place + ahead)
        return np.where(kind < self.settings.current + self.settings.future, later, anywhere)

    def _actions_at(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """The actions taken at `place`; a uniformly random one where a trajectory ends."""
        taken = self.actions[place]
        return np.where(taken < 0, self.rng.integers(self.num_actions, size=len(place)), taken)
