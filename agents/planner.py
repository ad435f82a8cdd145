"""The greedy 1-step planner: one policy table for a model, and how far it gets."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from envs.ground_truth import GroundTruth
from qrl.q_models.base import QModel

MAX_STEPS = 300  # the paper's cap for planning
_PAIRS_AT_ONCE = 2**14


@torch.no_grad()
def all_steps_to_goal(model: QModel, observations: Tensor) -> NDArray[np.float32]:
    """(states, goals, actions): `steps_to_goal` between all states, computed in parts to bound the memory."""
    was_training = model.training
    model.eval()
    rows = model.encode(observations)
    chunk = max(1, _PAIRS_AT_ONCE // (len(rows) * model.spec.num_actions))
    parts = [model.steps_to_goal(part[:, None], rows[None]).float().cpu() for part in rows.split(chunk)]
    model.train(was_training)
    return torch.cat(parts).numpy()


def policy_table(steps_to_goal: NDArray[np.float32], seed: int) -> NDArray[np.int64]:
    """(states, goals): the action with the fewest steps to go; ties by an order drawn for each state and goal."""
    actions = np.broadcast_to(np.arange(steps_to_goal.shape[-1]), steps_to_goal.shape)
    order = np.random.default_rng(seed).permuted(actions, axis=-1)
    best = steps_to_goal == steps_to_goal.min(axis=-1, keepdims=True)
    return np.where(best, order, -1).argmax(-1)


@dataclass(frozen=True)
class Outcome:
    """What following a policy from every start to every goal comes to; fields are (tasks,)."""

    success: NDArray[np.bool_]
    steps: NDArray[np.int64]


def follow(
    policy: NDArray[np.int64],
    truth: GroundTruth,
    starts: NDArray[np.int64],
    goals: NDArray[np.int64],
    max_steps: int = MAX_STEPS,
) -> Outcome:
    """Walk all tasks at once on the transition table."""
    state = starts.copy()
    steps = np.full(len(starts), max_steps)
    active = np.arange(len(starts))
    for step in range(max_steps):
        state[active] = truth.transitions[state[active], policy[state[active], goals[active]]]
        arrived = state[active] == goals[active]
        steps[active[arrived]] = step + 1
        active = active[~arrived]
        if not len(active):
            break
    return Outcome(state == goals, steps)


def exhaustive_tasks(truth: GroundTruth) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every start with every goal that can be reached from it."""
    starts, goals = np.meshgrid(truth.layout.starts, truth.layout.goals, indexing="ij")
    reachable = np.isfinite(truth.distances[starts, goals])
    return starts[reachable], goals[reachable]
