"""Hindsight: a trajectory that is at x_i and at x_j later has shown that j - i steps suffice, if nothing is random."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qrl.agents.evaluation.axioms import TOLERANCE
from qrl.common.seeds import derived_seed
from qrl.envs.dataset import Dataset
from qrl.q_models.base import QModel

MAX_PAIRS = 2**14  # of more, a random sample
_ROWS, _CHUNK = 2**13, 2**12  # states and pairs at once, which bounds the memory

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class HindsightPairs:
    """Pairs x_i = (s_i, a_i) and x_j, i < j, of one trajectory; fields are (pairs,).

    Where x_j is the end of a trajectory, no action was taken there: it is a random one, which is as near as any other.
    """

    states: Ids
    actions: Ids
    goals: Ids
    goal_actions: Ids
    steps: Ids  # j - i

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """All pairs of the trajectories, or a random sample, which is the same every time."""
        rng = np.random.default_rng(derived_seed(0, "hindsight"))
        first, later = _all_pairs(dataset) if _count(dataset).sum() <= MAX_PAIRS else _sampled_pairs(dataset, rng)
        actions = np.full(len(dataset.states), -1, np.int64)
        actions[dataset.sources] = dataset.actions
        random = rng.integers(dataset.header.spaces.num_actions, size=len(first))
        states = dataset.states.astype(np.int64)
        goal_actions = np.where(actions[later] < 0, random, actions[later])
        return cls(states[first], actions[first], states[later], goal_actions, later - first)


def _count(dataset: Dataset) -> Ids:
    """(episodes,): pairs of each trajectory, which has one state more than actions."""
    counts: Ids = dataset.lengths * (dataset.lengths + 1) // 2
    return counts


def _all_pairs(dataset: Dataset) -> tuple[Ids, Ids]:
    """Indices in `dataset.states` of all i and j."""
    parts = [start + np.stack(np.triu_indices(length + 1, 1)) for start, length in zip(
        dataset.starts, dataset.lengths, strict=True)]  # fmt: skip
    first, later = np.concatenate(parts, axis=1)
    return first, later


def _sampled_pairs(dataset: Dataset, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """`MAX_PAIRS` of them, uniform with replacement."""
    last = _count(dataset).cumsum()
    episodes = np.searchsorted(last, rng.integers(last[-1], size=MAX_PAIRS), "right")
    lengths = dataset.lengths[episodes]
    one, other = rng.integers(lengths + 1), rng.integers(lengths)
    other += other >= one  # two different steps of the trajectory
    starts = dataset.starts[episodes]
    return starts + np.minimum(one, other), starts + np.maximum(one, other)


@dataclass(frozen=True)
class Hindsight:
    """Learned distances beside the steps that a trajectory took, each (pairs,)."""

    distance: NDArray[np.float32]
    steps: Ids

    def __len__(self) -> int:
        return len(self.steps)

    @cached_property
    def excess(self) -> NDArray[np.float64]:
        """Steps by which the learned distance exceeds those taken, at least 0."""
        excess: NDArray[np.float64] = np.maximum(self.distance.astype(np.float64) - self.steps, 0)
        return excess

    @property
    def consistent(self) -> NDArray[np.bool_]:
        """Where it exceeds them by no more than rounding."""
        return self.excess <= TOLERANCE


@torch.no_grad()
def measure_hindsight(model: QModel, observations: Tensor, pairs: HindsightPairs) -> Hindsight:
    """`model` is in eval mode; `observations`: the scaled states of the dataset."""
    device = observations.device
    s, a, g, b = (
        torch.from_numpy(ids).to(device) for ids in (pairs.states, pairs.actions, pairs.goals, pairs.goal_actions)
    )
    rows = torch.cat([model.encode(part) for part in observations.split(_ROWS)])
    chunks = [
        model.distance(rows.index_select(0, states), actions, rows.index_select(0, goals), goal_actions)
        for states, actions, goals, goal_actions in zip(*(ids.split(_CHUNK) for ids in (s, a, g, b)), strict=True)
    ]
    distance = torch.cat(chunks)
    if model.goal_kind == "state":  # which does not count the step that the action itself takes
        distance = distance + 1
    return Hindsight(distance.float().cpu().numpy(), pairs.steps)
