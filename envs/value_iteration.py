"""Distances of stochastic worlds by value iteration: d(s, g) = log_gamma max_pi E[gamma^T], with T the steps to g."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from qrl.envs.errors import WorldError

TOLERANCE = 1e-13  # bound on the error of E[gamma^T]; that of a distance d is then TOLERANCE * gamma^-d / ln(1 / gamma)
_GROWTH = 1e-10  # relative growth per update at which far values, too, have settled
_ENTRIES_AT_ONCE = 2**23  # (states, actions, goals) in memory: 64 MB


def best_values(
    outcomes: csr_array, num_actions: int, goals: NDArray[np.integer[Any]], discount: float
) -> NDArray[np.float64]:
    """(states, goals): max_pi E[gamma^T]; 0 for unreachable goals, and only for these.

    outcomes: (states * actions, states), the probability of each next state.

    Values start at 0 and grow, V <- max_a gamma E V with V(g, g) = 1, which contracts by gamma: once an update changes
    nothing by more than c, the error is at most c * gamma / (1 - gamma). Each goal has updates of its own number, so
    that its values do not depend on which others are asked for.
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
    final = np.empty((outcomes.shape[1], len(goals)))
    pending = np.arange(len(goals))  # the columns that still change
    values = np.zeros_like(final)
    values[goals, pending] = 1
    largest_change = TOLERANCE * (1 - discount) / discount
    while len(pending):
        updated = discount * _best_after(outcomes, num_actions, values)
        updated[goals[pending], np.arange(len(pending))] = 1
        change = np.abs(updated - values)
        # Far states get their values, which are small, only after as many updates as they are steps away.
        settled = (change.max(0) <= largest_change) & (change <= _GROWTH * updated).all(0)
        values = updated
        if settled.any():
            final[:, pending[settled]] = updated[:, settled]
            pending, values = pending[~settled], updated[:, ~settled]
    _check_underflow(outcomes, num_actions, final, discount)
    return final


def _best_after(outcomes: csr_array, num_actions: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(states, goals): the largest mean of `values` (states, goals) after an action."""
    best: NDArray[np.float64] = (outcomes @ values).reshape(len(values), num_actions, -1).max(1)
    return best


def _check_underflow(outcomes: csr_array, num_actions: int, values: NDArray[np.float64], discount: float) -> None:
    """Refuse values that are 0 although a next state has a positive one: gamma^T is too small for a float."""
    positive = values > 0
    if not positive.all() and (~positive & (_best_after(outcomes, num_actions, positive.astype(float)) > 0)).any():
        raise WorldError(
            f"discount: {discount:g} is too small for this world: its powers for the farthest reachable goals are 0 in "
            "double precision, so that these have no exact distance; choose a larger discount"
        )


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
