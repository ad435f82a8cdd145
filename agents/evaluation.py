"""How well a model plans, and how near its distances are to the truth."""

import numpy as np
from torch import Tensor

from agents.planner import all_steps_to_goal, exhaustive_tasks, follow, policy_table
from envs.ground_truth import GroundTruth
from qrl.q_models.base import QModel


def score(model: QModel, observations: Tensor, truth: GroundTruth, seed: int) -> dict[str, float]:
    """Planning success over all tasks of the layout, and errors of the learned steps to the goal.

    Steps are compared for every state, action and other goal that the action's outcome can reach.
    """
    learned = all_steps_to_goal(model, observations)
    starts, goals = exhaustive_tasks(truth)
    outcome = follow(policy_table(learned, seed), truth, starts, goals)
    exact = truth.distances[truth.transitions].transpose(0, 2, 1)
    states = np.arange(len(exact))
    compared = np.isfinite(exact) & (states[:, None] != states)[..., None]
    error = learned[compared] - exact[compared]
    return {
        "success_rate": float(outcome.success.mean()),
        "distance_error": float(error.mean()),
        "distance_absolute_error": float(np.abs(error).mean()),
    }
