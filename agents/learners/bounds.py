"""Upper bounds of distances from the data: in a deterministic world, every observed path is one.

A bound is sound offline information. In a stochastic world it would be the length of a lucky path: where an action of a
state leads to several states, a bound that was asked for is refused, and `auto` bounds nothing.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from qrl.agents.errors import LearnerError
from qrl.agents.learners.goal_sampler import Batch
from qrl.agents.planning.empirical_graph import EmpiricalGraph
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import MAX_TABLE
from qrl.q_models.base import pick

Bound = Callable[[Batch], Tensor]  # the most steps from (s, a) to (g, a_g), infinite where nothing is known


def make_bound(kind: Literal["auto", "none", "trajectory", "graph"], dataset: Dataset) -> Bound | None:
    """`auto`: shortest paths over all transitions, the trajectory's own where there are too many states, or none."""
    if kind == "none":
        return None
    chance = stochastic(dataset)
    if chance is not None and kind == "auto":
        return None
    if chance is not None:
        raise LearnerError(f"learner.bound: {chance}; use bound=none")
    if kind != "trajectory":
        graph = EmpiricalGraph(dataset)
        if graph.fits:
            return _graph_bound(graph)
    if dataset.lengths.max() > 1:
        return along_trajectory
    if kind == "auto":
        return None
    raise LearnerError(
        "learner.bound: there are no trajectories, only single transitions, which bound nothing; use bound=graph, "
        f"for up to {MAX_TABLE:,} distinct states, or bound=none"
    )


def along_trajectory(batch: Batch) -> Tensor:
    """The rest of the same trajectory."""
    return batch.hindsight


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


def _graph_bound(graph: EmpiricalGraph) -> Bound:
    """Shortest paths over all observed transitions."""

    def bound(batch: Batch) -> Tensor:
        remaining = torch.from_numpy(graph.between(batch.states.cpu().numpy(), batch.goals.cpu().numpy()))
        steps = pick(remaining.to(batch.states.device), batch.actions, -1) + 1
        same_pair = (batch.states == batch.goals) & (batch.actions == batch.goal_actions)
        return torch.where(same_pair, 0.0, steps)

    return bound
