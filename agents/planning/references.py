"""Reference planners: the exact distances, and the data without any generalization."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from qrl.agents.planning.planner import Ids, LazyPolicy, RandomPolicy, Steps
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth


def oracle_steps(truth: GroundTruth) -> Steps:
    return truth.after_action(truth.distances).transpose(0, 2, 1)


def lazy_oracle(truth: GroundTruth, goals: Ids, seed: int) -> LazyPolicy:
    """Optimal actions towards some goals, in a world too large for all distances."""
    world, targets = truth.world, np.unique(goals)
    remaining = truth.after_action(truth.distances_to(targets))

    def steps(states: Ids, goals: Ids) -> Steps:
        return remaining[states, :, np.searchsorted(targets, goals)]

    return LazyPolicy(steps, world.observations, seed, fallback=RandomPolicy(world.num_actions, seed))


def empirical_steps(dataset: Dataset) -> Steps:
    """Shortest paths over the observed transitions; infinite for an action that was not tried in a state."""
    count, num_actions = len(dataset.observations), dataset.header.spaces.num_actions
    before, action, after = np.unique(
        [dataset.states[dataset.sources], dataset.actions, dataset.states[dataset.sources + 1]], axis=1
    )
    graph = coo_array((np.ones(len(before), np.int32), (before, after)), shape=(count, count)).tocsr()
    distances = shortest_path(graph, method="D", unweighted=True).astype(np.float32)
    steps = np.full((count, num_actions, count), np.inf, np.float32)
    # In a stochastic world an action may lead to several states: the graph assumes the best of them.
    np.minimum.at(steps, (before, action), distances[after])
    return steps.transpose(0, 2, 1)
