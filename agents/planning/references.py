"""Reference planners by the exact distances."""

import numpy as np

from qrl.agents.planning.planner import Ids, LazyPolicy, RandomPolicy, Steps
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
