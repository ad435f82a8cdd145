"""Policies in stochastic worlds: the Markov chain of a policy solved exactly, or episodes drawn from it."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qrl.envs.ground_truth import GroundTruth
from qrl.envs.value_iteration import steps_of

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


class Averaging(Hashable, Protocol):
    def expected(self, values: NDArray[Any]) -> NDArray[Any]:
        """(states, goals): the mean of `values` (states, goals, actions) over the actions that the policy takes."""
        ...


@lru_cache(maxsize=1)  # asked for the tasks, then for all pairs
def solve_chain(policy: Averaging, truth: GroundTruth, max_steps: int) -> tuple[Floats, NDArray[np.float32]]:
    """(states, goals): the probability of reaching a goal within `max_steps`, and log_gamma E[gamma^T].

    T is the number of steps to the goal; without chance, the second is T. A goal that is not reached within `max_steps`
    counts as never reached.
    """
    mean = policy.expected
    count, discount = truth.world.num_states, truth.world.discount
    probability, value = np.eye(count), np.eye(count)
    for _ in range(max_steps):
        probability = mean(truth.expected_after(probability))
        value = discount * mean(truth.expected_after(value))
        np.fill_diagonal(probability, 1)
        np.fill_diagonal(value, 1)
    return probability, steps_of(value, discount)


def sample_chain(
    truth: GroundTruth,
    choose: Callable[[Ids, Ids], Ids],
    starts: Ids,
    goals: Ids,
    max_steps: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.bool_], Ids]:
    """(tasks,): one episode of each: whether it reached the goal, and the steps taken."""
    state, steps = starts.copy(), np.full(len(starts), max_steps)
    active = np.arange(len(starts))
    for step in range(max_steps):
        actions = choose(state[active], goals[active])
        state[active] = truth.world.next_states(state[active], actions, rng)
        done = state[active] == goals[active]
        steps[active[done]] = step + 1
        active = active[~done]
        if not len(active):
            break
    return state == goals, steps
