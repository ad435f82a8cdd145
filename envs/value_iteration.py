"""Distances of stochastic worlds by value iteration: d(s, g) = log_gamma max_pi E[gamma^T], with T the steps to g."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

TOLERANCE = 1e-13  # bound on the error of E[gamma^T]; that of a distance d is then TOLERANCE * gamma^-d / ln(1 / gamma)
_GROWTH = 1e-10  # relative growth per update at which far values, too, have settled
_ENTRIES_AT_ONCE = 2**23  # (states, actions, goals) in memory: 64 MB


def best_values(
    outcomes: csr_array, num_actions: int, goals: NDArray[np.integer[Any]], discount: float
) -> NDArray[np.float64]:
    """(states, goals): max_pi E[gamma^T]; 0 for unreachable goals.

    outcomes: (states * actions, states), the probability of each next state.

    Values start at 0 and grow, V <- max_a gamma E V with V(g, g) = 1, which contracts by gamma: once an update changes
    nothing by more than c, the error is at most c * gamma / (1 - gamma).
    """
    count = outcomes.shape[1]
    values = np.empty((count, len(goals)))
    size = max(1, _ENTRIES_AT_ONCE // outcomes.shape[0])
    for first in range(0, len(goals), size):
        values[:, first : first + size] = _iterate(outcomes, num_actions, goals[first : first + size], discount)
    return values


def _iterate(
    outcomes: csr_array, num_actions: int, goals: NDArray[np.integer[Any]], discount: float
) -> NDArray[np.float64]:
    columns = np.arange(len(goals))
    values = np.zeros((outcomes.shape[1], len(goals)))
    values[goals, columns] = 1
    largest_change = TOLERANCE * (1 - discount) / discount
    while True:
        updated: NDArray[np.float64] = discount * (outcomes @ values).reshape(len(values), num_actions, len(goals)).max(
            1
        )
        updated[goals, columns] = 1
        change = np.abs(updated - values)
        # Far states get their values, which are small, only after as many updates as they are steps away.
        settled = bool(change.max() <= largest_change) and bool((change <= _GROWTH * updated).all())
        values = updated
        if settled:
            return values


def steps_of(values: NDArray[np.float64], discount: float) -> NDArray[np.float32]:
    """log_gamma of values; infinite for 0."""
    with np.errstate(divide="ignore"):
        steps = np.log(values) / np.log(discount)
    rounded: NDArray[np.float32] = np.maximum(steps, 0).astype(np.float32)
    return rounded


def values_of(steps: NDArray[np.float32], discount: float) -> NDArray[np.float64]:
    """gamma^steps; 0 for infinite steps."""
    values: NDArray[np.float64] = discount ** steps.astype(np.float64)
    return values
