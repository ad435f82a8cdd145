"""A one-way ring: action 0 stays, action 1 moves on. Distances are asymmetric and known."""

import numpy as np
import torch
from torch import Tensor

from qrl.envs.dataset import Dataset

STATES, ACTIONS = 4, 2


def every_transition() -> Dataset:
    """Each as an episode of its own."""
    states, actions = np.indices((STATES, ACTIONS)).reshape(2, -1)
    rows = np.stack([states, (states + actions) % STATES], 1)
    return Dataset.from_arrays(rows.reshape(-1, 1), actions, np.ones(len(rows), int), num_actions=ACTIONS)


def wander(steps: int, moves: float = 0.5) -> Dataset:
    """One trajectory of a behaviour that moves on with probability `moves`."""
    actions = (np.random.default_rng(0).random(steps) < moves).astype(int)
    states = np.concatenate([[0], np.cumsum(actions)]) % STATES
    return Dataset.from_arrays(states[:, None], actions, [steps], num_actions=ACTIONS)


def exact_distances() -> Tensor:
    """(states, actions, goals, goal actions)"""
    s, a, g, b = np.indices((STATES, ACTIONS, STATES, ACTIONS))
    return torch.from_numpy(np.where((s == g) & (a == b), 0.0, 1 + (g - s - a) % STATES))


def successor_distances(moves: float, discount: float) -> Tensor:
    """log(p(y | y) / p(y | x)) in steps, with p(y | x) = (1 - gamma) sum_t gamma^t P(x_t = y | x_0 = x)."""
    s, a, g, b = np.indices((STATES, ACTIONS, STATES, ACTIONS))
    size = STATES * ACTIONS
    following = np.where((s + a) % STATES == g, np.where(b == 1, moves, 1 - moves), 0.0).reshape(size, size)
    p = (1 - discount) * np.linalg.inv(np.eye(size) - discount * following)
    return torch.from_numpy(np.log(np.diag(p) / p) / -np.log(discount)).view(STATES, ACTIONS, STATES, ACTIONS)
