"""What the metrics are computed from: tasks that were planned, estimates beside exact distances, and axioms."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrl.agents.evaluation.axioms import Axioms, measure_axioms
from qrl.agents.evaluation.validation import Validation
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import MAX_STEPS, Outcome, Steps, WalkingPolicy, follow
from qrl.agents.planning.references import oracle_steps
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth, best_actions

Mask = NDArray[np.bool_]
Range = tuple[int, int]  # of exact distances, both ends included; (0, 4) ends just below 5 where they are no integers


@dataclass(frozen=True)
class Tasks:
    """Outcomes of tasks, each field (tasks,); exact: their exact distances, where known."""

    success: NDArray[Any]  # or its probability
    steps: NDArray[Any]
    cause: NDArray[np.str_]
    exact: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, outcome: Outcome, exact: NDArray[np.float32] | None = None) -> "Tasks":
        return cls(outcome.success, outcome.steps, outcome.cause, exact)

    def __len__(self) -> int:
        return len(self.success)

    def select(self, chosen: Mask) -> "Tasks":
        exact = None if self.exact is None else self.exact[chosen]
        return Tasks(self.success[chosen], self.steps[chosen], self.cause[chosen], exact)

    def between(self, low: int, high: int) -> "Tasks":
        """Those whose exact distance lies in a range."""
        assert self.exact is not None
        return self.select((low <= self.exact) & (self.exact < high + 1))


@dataclass(frozen=True)
class Estimates:
    """Estimated beside exact steps to the goal, each (pairs,), for some (state, action, goal)."""

    estimate: NDArray[np.float32]
    exact: NDArray[np.float32]
    longest: float  # of all exact steps in the world

    def __len__(self) -> int:
        return len(self.estimate)

    @cached_property
    def known(self) -> Mask:
        return np.isfinite(self.estimate)

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """Of the finite estimates, estimate - exact."""
        return self.estimate[self.known].astype(np.float64) - self.exact[self.known]

    @cached_property
    def ratio(self) -> NDArray[np.float64]:
        """Of the finite estimates, estimated / exact distance from the state-action pair.

        That distance counts the action itself, so it is 1 more than the steps that remain after it, and never 0.
        """
        return (self.estimate[self.known].astype(np.float64) + 1) / (self.exact[self.known] + 1)

    def between(self, low: int, high: int) -> "Estimates":
        """Those whose exact steps lie in a range."""
        chosen = (low <= self.exact) & (self.exact < high + 1)
        return Estimates(self.estimate[chosen], self.exact[chosen], self.longest)


class Measurements:
    """One planner on one world; each part is computed when a metric first asks for it, and None if it does not exist.

    tasks: outcomes of the tasks, if any were planned. policy: what acts for all pairs, if it can.
    steps: (states, goals, actions), the planner's estimates, if it has any. agent: for the axioms.
    validation: on held-out trajectories, if there are any.
    elsewhere: the planner has learned in another world: the dataset does not tell what it has seen.
    """

    def __init__(
        self,
        *,
        tasks: Tasks | None,
        dataset: Dataset,
        truth: GroundTruth | None = None,
        policy: WalkingPolicy | None = None,
        steps: Steps | None = None,
        agent: Agent | None = None,
        validation: Validation | None = None,
        seed: int = 0,
        max_steps: int = MAX_STEPS,
        elsewhere: bool = False,
    ) -> None:
        self.tasks: Tasks | None = tasks
        self.dataset = dataset
        self.truth = truth
        self.policy = policy
        self.steps = steps
        self.agent = agent
        self.validation: Validation | None = validation
        self.seed = seed
        self.max_steps = max_steps
        self._seen_is_known = not (dataset.noisy or elsewhere)

    @property
    def unreachable_tasks(self) -> int | None:
        if self.truth is None or self.policy is None:
            return None
        world = self.truth.world
        pairs = len(world.starts) * len(world.goals) - len(np.intersect1d(world.starts, world.goals))
        return pairs - len(self.truth.all_tasks()[0])

    @cached_property
    def all_pairs(self) -> Tasks | None:
        """From every state to every other reachable one."""
        if self.truth is None or self.policy is None:
            return None
        starts, goals = np.nonzero(reachable_pairs(self.truth))
        outcome = follow(self.policy, self.truth, starts, goals, self.max_steps)
        return Tasks.of(outcome, self.truth.distances[starts, goals])

    @cached_property
    def seen_pairs(self) -> Tasks | None:
        """Those of all pairs of which some trajectory visits the start and later the goal."""
        return self._pairs(seen=True)

    @cached_property
    def unseen_pairs(self) -> Tasks | None:
        return self._pairs(seen=False)

    def _pairs(self, seen: bool) -> Tasks | None:
        if self.truth is None or self.all_pairs is None or not self._seen_is_known:
            return None
        connected = np.any(seen_goals(self.dataset), axis=-1)  # by one trajectory, whatever its first action
        return self.all_pairs.select(connected[reachable_pairs(self.truth)] == seen)

    @cached_property
    def optimal_actions(self) -> NDArray[Any] | None:
        """(pairs,): from every state to every other reachable one, the probability of taking an optimal action."""
        if self.truth is None or self.policy is None:
            return None
        optimal = self.policy.expected(best_actions(self._exact))
        return optimal[reachable_pairs(self.truth)]

    @cached_property
    def _exact(self) -> Steps:
        """(states, goals, actions): exact steps to the goal after each action."""
        assert self.truth is not None
        return oracle_steps(self.truth)

    @cached_property
    def reachable(self) -> Estimates | None:
        return self._estimates(reachable_goals)

    @cached_property
    def seen(self) -> Estimates | None:
        return self._in_data(seen=True)

    @cached_property
    def unseen(self) -> Estimates | None:
        return self._in_data(seen=False)

    def _in_data(self, seen: bool) -> Estimates | None:
        if not self._seen_is_known:
            return None
        return self._estimates(lambda exact: reachable_goals(exact) & (seen_goals(self.dataset) == seen))

    @cached_property
    def unreachable(self) -> Estimates | None:
        return self._estimates(lambda exact: np.isinf(exact) & other_states(exact))

    def _estimates(self, choose: Callable[[Steps], Mask]) -> Estimates | None:
        if self.truth is None or self.steps is None:
            return None
        exact, chosen = self._exact, choose(self._exact)
        return Estimates(self.steps[chosen], exact[chosen], float(exact[reachable_goals(exact)].max()))

    @cached_property
    def axioms(self) -> Axioms | None:
        if self.agent is None or self.agent.learns == "scores":
            return None
        steps, truth = (None, None) if self.dataset.noisy else (self.steps, self.truth)
        return measure_axioms(self.agent, steps, self.dataset, truth, self.seed)


def reachable_pairs(truth: GroundTruth) -> Mask:
    """(states, goals): every state with every other reachable one."""
    return np.isfinite(truth.distances) & ~np.eye(len(truth.distances), dtype=bool)


def reachable_goals(exact: Steps) -> Mask:
    """Which exact steps are compared: to all other states that are reachable after the action."""
    return np.isfinite(exact) & other_states(exact)


def other_states(exact: Steps) -> Mask:
    """(states, goals, 1): all but the state itself as goal."""
    return ~np.eye(len(exact), dtype=bool)[..., None]


@lru_cache(maxsize=2)  # asked for every planner and picture of an evaluation
def seen_goals(dataset: Dataset) -> Mask:
    """(states, goals, actions): whether some trajectory takes the action in the state and later visits the goal."""
    count = len(dataset.observations)
    seen = np.zeros((count, count, dataset.header.spaces.num_actions), bool)
    steps, actions = dataset.sources, dataset.actions
    remaining = np.repeat(dataset.ends, dataset.lengths) - steps
    for offset in range(1, int(remaining.max()) + 1):
        inside = remaining >= offset
        steps, actions, remaining = steps[inside], actions[inside], remaining[inside]
        seen[dataset.states[steps], dataset.states[steps + offset], actions] = True
    return seen


def distance_ranges(distances: NDArray[np.float32]) -> list[Range]:
    """At most ten ranges of exact distances, from 0 to the longest finite one."""
    longest = math.ceil(distances[np.isfinite(distances)].max())
    width = longest // 10 + 1
    return [(low, low + width - 1) for low in range(0, longest + 1, width)]
