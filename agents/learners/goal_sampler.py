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

    Where goals are states, goal actions are carried along and ignored.
    """

    states: Tensor
    actions: Tensor
    next_states: Tensor
    goals: Tensor
    goal_actions: Tensor

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

    def sample(self, size: int) -> Batch:
        """`size` transitions, uniform with replacement, each with a goal."""
        transitions = self.rng.integers(len(self.sources), size=size)
        steps = self.sources[transitions]
        goal_steps = self._goal_steps(steps, self.ends[transitions])
        return Batch(
            states=torch.from_numpy(self.states[steps]),
            actions=torch.from_numpy(self.actions[steps]),
            next_states=torch.from_numpy(self.states[steps + 1]),
            goals=torch.from_numpy(self.states[goal_steps]),
            goal_actions=torch.from_numpy(self._actions_at(goal_steps)),
        )

    def sample_pairs(self, size: int) -> tuple[Tensor, Tensor]:
        """`size` random state-action pairs of the dataset: states and actions."""
        steps = self.rng.integers(len(self.states), size=size)
        return torch.from_numpy(self.states[steps]), torch.from_numpy(self._actions_at(steps))

    def _goal_steps(self, steps: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
        size = len(steps)
        kind = self.rng.random(size)
        remaining = ends - steps  # at least 1
        if self.settings.offset == "uniform":
            offsets = 1 + (self.rng.random(size) * remaining).astype(np.int64)
        else:
            offsets = np.minimum(self.rng.geometric(1 - self.settings.geometric_discount, size), remaining)
        random = self.rng.integers(len(self.states), size=size)
        same_trajectory = np.where(kind < self.settings.current, steps, steps + offsets)
        return np.where(kind < self.settings.current + self.settings.future, same_trajectory, random)

    def _actions_at(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The actions taken at `steps`; a uniformly random one where a trajectory ends."""
        actions = self.actions[steps]
        return np.where(actions < 0, self.rng.integers(self.num_actions, size=len(steps)), actions)
