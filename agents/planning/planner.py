"""The greedy 1-step planner: a policy table for all states and goals, and walks that follow it."""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from tqdm import tqdm

from qrl.agents.planning.chains import sample_chain, solve_chain
from qrl.common.seeds import derived_seed
from qrl.envs.ground_truth import GroundTruth
from qrl.errors import ContractError
from qrl.q_models.base import QModel

MAX_STEPS = 300  # the paper's cap for planning
_CHUNK = 2**14  # state-action pairs at once, which bounds the memory

Ids = NDArray[np.int64]
Steps = NDArray[np.float32]  # (states, goals, actions): steps that remain to each goal after each action


@torch.no_grad()
def all_steps_to_goal(model: QModel, observations: Tensor, goals: Ids | None = None) -> Steps:
    """`steps_to_goal` from all states to `goals`, by default all states, computed in chunks."""
    was_training = model.training
    model.eval()
    rows = model.encode(observations)
    targets = rows if goals is None else rows[torch.from_numpy(goals)]
    count = len(rows)
    chunk = min(count, max(1, _CHUNK // (len(targets) * model.spec.num_actions**2)))
    steps = np.empty((count, len(targets), model.spec.num_actions), np.float32)
    for first in tqdm(range(0, count, chunk), desc="distances", delay=5, disable=None, leave=False):
        # The last chunk overlaps the one before: with a single shape, heads are compiled once.
        part = slice(min(first, count - chunk), min(first, count - chunk) + chunk)
        steps[part] = model.steps_to_goal(rows[part, None], targets[None]).cpu()
    model.train(was_training)
    if np.isnan(steps).any():
        raise ContractError(f"{type(model).__name__} returned NaN; check its weights and the observations")
    return steps


def distances_between(steps: Steps) -> NDArray[np.float32]:
    """(states, goals): one step by the best action and those that remain after it; 0 from a state to itself."""
    distances: NDArray[np.float32] = steps.min(-1) + 1
    np.fill_diagonal(distances, 0)
    return distances


@dataclass(frozen=True)
class Outcome:
    """The outcome of following a policy; fields are (tasks,).

    success: whether the goal was reached; in a stochastic world, the probability of that where it was computed.
    steps: how many were taken, up to the cap where the goal was not reached; with probabilities, log_gamma E[gamma^T].
    cause: "" for a success. For a failure "blocked" where the last move changed nothing, because a wall or a door stops
    it forever; "loop" where the last state had been visited before; "cap" where the steps ran out on the way.
    """

    success: NDArray[Any]
    steps: NDArray[Any]
    cause: NDArray[np.str_]

    @classmethod
    def of_chance(cls, success: NDArray[Any], steps: NDArray[Any]) -> Self:
        """Of a stochastic world, in which nothing is stuck for good: all failures are the cap's."""
        return cls(success, steps, np.where(success == 1, "", "cap"))


class Policy(Protocol):
    """Chooses an action for an observation and the observation of the goal; `deterministic`: always the same one."""

    deterministic: bool

    def act(self, observation: ArrayLike, goal: ArrayLike) -> int: ...


@runtime_checkable
class WalkingPolicy(Hashable, Protocol):
    """A policy that can follow many tasks at once on a transition table."""

    def walk(self, truth: GroundTruth, starts: Ids, goals: Ids, max_steps: int = MAX_STEPS) -> Outcome: ...

    def expected(self, values: NDArray[Any]) -> NDArray[Any]:
        """(states, goals): the mean of `values` (states, goals, actions) over the actions that the policy takes."""
        ...


class GreedyPolicy(ABC):
    """The same action whenever it is in the same state with the same goal.

    States are those that have a row in `observations`; other observations are left to the `fallback`.
    """

    deterministic = True  # unless it sees a state differently every time

    def __init__(self, observations: NDArray[np.float32], fallback: Policy, seed: int = 0) -> None:
        self.fallback = fallback
        self.seed = seed
        self._ids = {row.tobytes(): state for state, row in enumerate(as_rows(observations))}

    @abstractmethod
    def choose(self, states: Ids, goals: Ids) -> Ids:
        """(tasks,): an action for each state and goal."""

    def act(self, observation: ArrayLike, goal: ArrayLike) -> int:
        state, target = (self._ids.get(as_rows(row).tobytes()) for row in (observation, goal))
        if state is None or target is None:
            return self.fallback.act(observation, goal)
        return int(self.choose(np.array([state]), np.array([target]))[0])

    def walk(self, truth: GroundTruth, starts: Ids, goals: Ids, max_steps: int = MAX_STEPS) -> Outcome:
        """Follow all tasks at once on the transition table; with chance, one episode of each."""
        if not (self.deterministic and truth.world.deterministic):
            rng = np.random.default_rng(derived_seed(self.seed, "chance"))
            return Outcome.of_chance(*sample_chain(truth, self.choose, starts, goals, max_steps, rng))
        last, steps, stuck = _walk(self.choose, truth, starts, goals, max_steps, give_up=True)
        cause = np.where(last == goals, "", np.where(stuck == "", "cap", stuck)).astype("<U7")
        # A walk that still moves at the cap is in a loop if and only if its last state had been visited before.
        moving = np.flatnonzero(cause == "cap")
        state, end, moving_goals = starts[moving], last[moving], goals[moving]
        visited = np.zeros(len(moving), bool)
        for _ in range(max_steps if len(moving) else 0):
            visited |= state == end
            state = truth.transitions[state, self.choose(state, moving_goals)]
        cause[moving[visited]] = "loop"
        return Outcome(last == goals, steps, cause)


class TablePolicy(GreedyPolicy):
    """An action for every two states, in a table."""

    def __init__(self, table: Ids, observations: NDArray[np.float32], fallback: Policy, seed: int = 0) -> None:
        super().__init__(observations, fallback, seed)
        self.table = table

    @classmethod
    def greedy(cls, steps: Steps, observations: NDArray[np.float32], seed: int, fallback: Policy | None = None) -> Self:
        """The action with the fewest steps to go; for unknown states a random one, unless there is a `fallback`."""
        keys = state_keys(observations)
        table = greedy_actions(steps, keys[:, None], keys[None], seed)
        return cls(table, observations, fallback or RandomPolicy(steps.shape[-1], seed), seed)

    def choose(self, states: Ids, goals: Ids) -> Ids:
        return self.table[states, goals]

    def expected(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.take_along_axis(values, self.table[..., None], -1)[..., 0]


class LazyPolicy(GreedyPolicy):
    """The action with the fewest steps to go, computed for the tasks at hand: for worlds too large for a table.

    steps: (tasks, actions), the steps that remain after each action, for states and goals (tasks,).
    """

    def __init__(
        self,
        steps: Callable[[Ids, Ids], Steps],
        observations: NDArray[np.float32],
        seed: int,
        fallback: Policy,
        deterministic: bool = True,
    ) -> None:
        super().__init__(observations, fallback, seed)
        self.steps = steps
        self.deterministic = deterministic
        self.keys = state_keys(observations)

    def choose(self, states: Ids, goals: Ids) -> Ids:
        return greedy_actions(self.steps(states, goals), self.keys[states], self.keys[goals], self.seed)


class RandomPolicy:
    """Uniformly random actions. Such a walk is never stuck for good: all its failures are the cap's."""

    deterministic = False

    def __init__(self, num_actions: int, seed: int) -> None:
        self.num_actions = num_actions
        self.rng = np.random.default_rng(seed)

    def act(self, observation: ArrayLike, goal: ArrayLike) -> int:
        return int(self.rng.integers(self.num_actions))

    def expected(self, values: NDArray[Any]) -> NDArray[Any]:
        mean: NDArray[Any] = values.mean(-1)
        return mean

    def walk(self, truth: GroundTruth, starts: Ids, goals: Ids, max_steps: int = MAX_STEPS) -> Outcome:
        def choose(states: Ids, goals: Ids) -> Ids:
            return self.rng.integers(self.num_actions, size=len(states))

        if not truth.world.deterministic:
            return Outcome.of_chance(*sample_chain(truth, choose, starts, goals, max_steps, self.rng))
        last, steps, _ = _walk(choose, truth, starts, goals, max_steps, give_up=False)
        return Outcome(last == goals, steps, np.where(last == goals, "", "cap"))


def follow(policy: WalkingPolicy, truth: GroundTruth, starts: Ids, goals: Ids, max_steps: int = MAX_STEPS) -> Outcome:
    """The outcome of all tasks: walked, or in a stochastic world from the exact Markov chain of the policy."""
    if truth.world.deterministic:
        return policy.walk(truth, starts, goals, max_steps)
    probability, steps = solve_chain(policy, truth, max_steps)
    return Outcome.of_chance(probability[starts, goals], steps[starts, goals])


def _walk(
    choose: Callable[[Ids, Ids], Ids], truth: GroundTruth, starts: Ids, goals: Ids, max_steps: int, give_up: bool
) -> tuple[Ids, Ids, NDArray[np.str_]]:
    """The last state of each task, the steps taken, and why it was given up: "blocked", "loop" or "" if it was not.

    give_up: the same state always has the same action, so that a move that changes nothing, or a return to a marked
    state, repeats forever. The mark is moved at every power of two steps, as in Brent's search for cycles.
    """
    state, mark = starts.copy(), starts.copy()
    steps = np.full(len(starts), max_steps)
    stuck = np.full(len(starts), "", "<U7")
    active = np.arange(len(starts))
    for step in range(max_steps):
        current, target = state[active], goals[active]
        if step & (step - 1) == 0:
            mark[active] = current
        following = truth.transitions[current, choose(current, target)]
        state[active] = following
        done = following == target
        steps[active[done]] = step + 1
        if give_up:
            blocked, loop = following == current, following == mark[active]
            stuck[active[loop & ~done]] = "loop"
            stuck[active[blocked & ~done]] = "blocked"
            done |= blocked | loop
        active = active[~done]
        if not len(active):
            break
    return state, steps, stuck


def as_rows(observations: ArrayLike) -> NDArray[np.float32]:
    """Observations as datasets store them: equal ones have equal bytes, because -0 becomes 0."""
    return np.ascontiguousarray(observations, np.float32) + np.float32(0)


def state_keys(observations: ArrayLike) -> NDArray[np.uint64]:
    """A hash per observation (..., dim)."""
    rows = as_rows(observations)
    keys = [zlib.crc32(row.tobytes()) for row in rows.reshape(-1, rows.shape[-1])]
    return np.array(keys, np.uint64).reshape(rows.shape[:-1])


def greedy_actions(steps: Steps, states: NDArray[np.uint64], goals: NDArray[np.uint64], seed: int) -> Ids:
    """The actions with the fewest steps to go, along the last axis.

    Ties are broken by a pseudo-random order per state and goal, given by their keys, so that a table of many states
    and a single query agree.
    """
    pair = (states << np.uint64(32)) ^ goals ^ np.uint64(seed % 2**64)
    actions = np.arange(steps.shape[-1], dtype=np.uint64)
    with np.errstate(over="ignore"):
        order = _scramble(_scramble(pair)[..., None] + actions) | np.uint64(1)  # never 0, which marks the other actions
    best = steps == steps.min(axis=-1, keepdims=True)
    actions_taken: Ids = np.where(best, order, np.uint64(0)).argmax(-1)
    return actions_taken


def _scramble(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function of the SplitMix64 generator, which decorrelates nearby numbers."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
