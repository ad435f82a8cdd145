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


def make_bound(kind: Literal["auto", "none", "trajectory", "graph"], dataset: Dataset) -> Bound | None:
    """`auto`: shortest paths over all transitions, the trajectory's own where there are too many states, or none."""
    if kind == "none":
        return None
    chance = stochastic(dataset)
    if chance is not None and kind != "auto":
        raise LearnerError(f"learner.bound: {chance}; use bound=none")
    paths = dataset.lengths.max() > 1
    if chance is not None or (kind == "auto" and not (paths or graph_fits(dataset))):
        return None
    if kind != "trajectory" and graph_fits(dataset):
        return _graph_bound(dataset)
    if not paths:
        raise LearnerError(
            "learner.bound: there are no trajectories, only single transitions, which bound nothing; use bound=graph, "
            f"for up to {MAX_STATES:,} distinct states, or bound=none"
        )
    return lambda batch: batch.hindsight


def graph_fits(dataset: Dataset) -> bool:
    return len(dataset.observations) <= MAX_STATES


def stochastic(dataset: Dataset) -> str | None:
    """Why no path in the data bounds a distance, if the world is stochastic."""
    if dataset.world is not None and not dataset.world.deterministic:
        return f"the world {dataset.world.name} is stochastic, so that no path in the data bounds a distance"
    before, actions, after = (dataset.states[dataset.sources], dataset.actions, dataset.states[dataset.sources + 1])
    transitions = np.unique([before, actions, after], axis=1)
    pairs, outcomes = np.unique(transitions[:2], axis=1, return_counts=True)
    if outcomes.max() == 1:
        return None
    state, action = pairs[:, outcomes.argmax()]
    return (
        f"the world is stochastic, so that no path in the data bounds a distance: action {action} of state {state} "
        f"leads to {outcomes.max()} different states"
    )


def _graph_bound(dataset: Dataset) -> Bound:
    """Shortest paths over all observed transitions."""
    remaining = torch.from_numpy(np.ascontiguousarray(empirical_steps(dataset)))  # (states, goals, actions)

    def bound(batch: Batch) -> Tensor:
        steps = remaining[batch.states.cpu(), batch.goals.cpu(), batch.actions.cpu()].to(batch.states.device) + 1
        same_pair = (batch.states == batch.goals) & (batch.actions == batch.goal_actions)
        return torch.where(same_pair, 0.0, steps)

    return bound
