"""Upper bounds of distances from the data: in a deterministic world, every observed path is one.

A bound is sound offline information. In a stochastic world it would be the length of a lucky path: data in which an
action of a state leads to several states is refused.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from qrl.agents.errors import LearnerError
from qrl.agents.learners.goal_sampler import Batch
from qrl.agents.planning.references import empirical_steps
from qrl.envs.dataset import Dataset

MAX_STATES = 4000  # distinct states up to which shortest paths between all of them are tabulated

Bound = Callable[[Batch], Tensor]  # the most steps from (s, a) to (g, a_g), infinite where nothing is known


def make_bound(kind: Literal["trajectory", "graph"], dataset: Dataset) -> Bound:
    check_deterministic(dataset)
    if kind == "graph" and graph_fits(dataset):
        return _graph_bound(dataset)
    if dataset.lengths.max() < 2:
        raise LearnerError(
            "learner.bound: there are no trajectories, only single transitions, which bound nothing; use bound=graph, "
            f"for up to {MAX_STATES:,} distinct states, or bound=none"
        )
    return lambda batch: batch.hindsight


def graph_fits(dataset: Dataset) -> bool:
    return len(dataset.observations) <= MAX_STATES


def check_deterministic(dataset: Dataset) -> None:
    if dataset.world is not None and not dataset.world.deterministic:
        raise LearnerError(
            f"learner.bound: the world {dataset.world.name} is stochastic, so that no path in the data bounds a "
            "distance; use bound=none"
        )
    before, actions, after = (dataset.states[dataset.sources], dataset.actions, dataset.states[dataset.sources + 1])
    transitions = np.unique([before, actions, after], axis=1)
    pairs, outcomes = np.unique(transitions[:2], axis=1, return_counts=True)
    if outcomes.max() > 1:
        state, action = pairs[:, outcomes.argmax()]
        raise LearnerError(
            f"learner.bound: the world is stochastic, so that no path in the data bounds a distance: action {action} "
            f"of state {state} leads to {outcomes.max()} different states; use bound=none"
        )


def _graph_bound(dataset: Dataset) -> Bound:
    """Shortest paths over all observed transitions."""
    remaining = torch.from_numpy(np.ascontiguousarray(empirical_steps(dataset)))  # (states, goals, actions)

    def bound(batch: Batch) -> Tensor:
        steps = remaining[batch.states.cpu(), batch.goals.cpu(), batch.actions.cpu()].to(batch.states.device) + 1
        same_pair = (batch.states == batch.goals) & (batch.actions == batch.goal_actions)
        return torch.where(same_pair, 0.0, steps)

    return bound
