"""How near learned distances are to the truth, and how near they are to a quasimetric."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qrl.agents.evaluation.results import Axioms, BucketErrors, Distances, Errors, Unreachable
from qrl.agents.evaluation.statistics import rank_correlation
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import Steps
from qrl.agents.planning.references import oracle_steps
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth

Range = tuple[int, int]

MAX_STATES = 1000  # states that the axioms are measured on: more are sampled
_TRIPLES = 2**15
_PAIRS_AT_ONCE = 2**12
_TOLERANCE = 1e-3  # in steps: rounding stays below, a violation that matters is above


def buckets(truth: GroundTruth) -> list[Range]:
    """At most ten ranges of true distances (low, high), both included, from 0 to the longest."""
    longest = int(truth.distances[np.isfinite(truth.distances)].max())
    width = longest // 10 + 1
    return [(low, low + width - 1) for low in range(0, longest + 1, width)]


def reachable_pairs(exact: Steps) -> NDArray[np.bool_]:
    """Which true steps are compared: to all other states that can be reached after the action."""
    return np.isfinite(exact) & _others(exact)


def _others(exact: Steps) -> NDArray[np.bool_]:
    """(states, goals, 1): all but the state itself as goal."""
    return ~np.eye(len(exact), dtype=bool)[..., None]


@lru_cache(maxsize=2)  # asked for every planner and picture of an evaluation
def seen_goals(dataset: Dataset) -> NDArray[np.bool_]:
    """(states, goals, actions): whether some trajectory takes the action in the state and later visits the goal."""
    count = len(dataset.observations)
    seen = np.zeros((count, count, dataset.header.spaces.num_actions), bool)
    place, actions = dataset.sources, dataset.actions
    left = np.repeat(dataset.ends, dataset.lengths) - place
    for ahead in range(1, int(left.max()) + 1):
        goes_on = left >= ahead
        place, actions, left = place[goes_on], actions[goes_on], left[goes_on]
        seen[dataset.states[place], dataset.states[place + ahead], actions] = True
    return seen


def distances(steps: Steps, truth: GroundTruth, dataset: Dataset) -> Distances:
    """Compare the estimated with the true steps, for every state, action and other state as goal."""
    exact = oracle_steps(truth)
    reachable = reachable_pairs(exact)
    seen = seen_goals(dataset)
    ranges = buckets(truth)
    unreachable = steps[np.isinf(exact) & _others(exact)]
    return Distances(
        reachable=_errors(steps, exact, reachable),
        unreachable=Unreachable(
            pairs=unreachable.size,
            mean_estimate=_mean(unreachable),
            beyond=_mean(unreachable > exact[reachable].max()),
        ),
        seen=_errors(steps, exact, reachable & seen),
        unseen=_errors(steps, exact, reachable & ~seen),
        by_distance=[
            BucketErrors(
                low=low, high=high, **dict(_errors(steps, exact, reachable & (low <= exact) & (exact <= high)))
            )
            for low, high in ranges
        ],
    )


def _errors(steps: Steps, exact: Steps, chosen: NDArray[np.bool_]) -> Errors:
    estimate, true = steps[chosen], exact[chosen]
    known = np.isfinite(estimate)
    error = estimate[known].astype(np.float64) - true[known]
    return Errors(
        pairs=estimate.size,
        known=_mean(known),
        signed_error=_mean(error),
        absolute_error=_mean(np.abs(error)),
        spearman=_spearman(estimate, true),
        underestimated=_mean(error < -1),
    )


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean(dtype=np.float64)) if values.size else None


def _spearman(estimate: NDArray[np.float32], true: NDArray[np.float32]) -> float | None:
    """Over all pairs, an infinite estimate being the largest; undefined for NaN, and where one side does not vary."""
    found = rank_correlation(estimate, true)
    return None if math.isnan(found) else found


@torch.no_grad()
def axioms(agent: Agent, steps: Steps | None, dataset: Dataset, truth: GroundTruth | None, seed: int) -> Axioms:
    """Measure the axioms on the states of a dataset, or on a sample of them, with random triples x, y, z.

    `steps`: the agent's, between all states, if they have been computed.

    A model for goals that are states is asked for d((s, a), z) <= d((s, a), m) + 1 + min_b d((m, b), z).
    """
    rng = np.random.default_rng(seed)
    count = len(dataset.observations)
    states = np.sort(rng.choice(count, min(count, MAX_STATES), replace=False))
    observations = agent.scaling(torch.tensor(dataset.observations))
    rows = agent.model.encode(observations[states])
    excess = []
    for _ in range(_TRIPLES // _PAIRS_AT_ONCE):
        place = torch.from_numpy(rng.integers(len(states), size=(3, _PAIRS_AT_ONCE)))
        action = torch.from_numpy(rng.integers(agent.model.spec.num_actions, size=(3, _PAIRS_AT_ONCE)))
        excess.append(_triangle_excess(agent, rows, place, action))
    over = torch.cat(excess)
    chosen = np.ix_(states, states)
    between = agent.all_steps_to_goal(dataset.observations[states]) if steps is None else steps[chosen]
    exact = None if truth is None else truth.distances[chosen]
    return Axioms(
        triangle_violations=float((over > _TOLERANCE).float().mean()),
        triangle_excess=max(0.0, float(over.max())),
        identity_error=_identity_error(agent, observations, rows, dataset, rng),
        asymmetry=_asymmetry(between.min(-1), exact),
        true_asymmetry=None if exact is None else _asymmetry(exact, exact),
    )


def _triangle_excess(agent: Agent, rows: Tensor, place: Tensor, action: Tensor) -> Tensor:
    """d(x, z) - d(x, y) - d(y, z) for triples of states and actions (3, triples)."""
    x, y, z = (rows.index_select(0, each) for each in place)
    a, b, c = action
    distance = agent.model.distance
    if agent.model.goal_kind == "state-action":
        return distance(x, a, z, c) - distance(x, a, y, b) - distance(y, b, z, c)
    onward = 1 + distance(y, None, z, None).squeeze(-1).amin(-1)
    return distance(x, a, z, c) - distance(x, a, y, b) - onward


def _identity_error(
    agent: Agent, observations: Tensor, rows: Tensor, dataset: Dataset, rng: np.random.Generator
) -> float:
    if agent.model.goal_kind == "state-action":
        itself = torch.arange(agent.model.spec.num_actions).expand(len(rows), -1)
        expanded = rows[:, None]
        return float(agent.model.distance(expanded, itself, expanded, itself).abs().mean())
    transitions = rng.choice(dataset.num_transitions, min(dataset.num_transitions, _PAIRS_AT_ONCE), replace=False)
    place = dataset.sources[transitions]
    before, after = (agent.model.encode(observations[dataset.states[each]]) for each in (place, place + 1))
    action = torch.from_numpy(dataset.actions[transitions].astype(np.int64))
    return float(agent.model.distance(before, action, after, action).abs().mean())


def _asymmetry(between: NDArray[np.float32], exact: NDArray[np.float32] | None) -> float | None:
    """Mean |d(s, g) - d(g, s)| over different states; where the truth is known, over those that reach each other."""
    both = ~np.eye(len(between), dtype=bool)
    if exact is not None:
        both &= np.isfinite(exact) & np.isfinite(exact.T)
    return _mean(np.abs(between[both] - between.T[both]))
