"""How close a learned distance is to a quasimetric: violated axioms and asymmetry, measured on states of a dataset."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import Steps
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth

MAX_STATES = 1000  # larger datasets are sampled
_TRIPLES = 2**15
_CHUNK = 2**12  # triples or transitions at once
TOLERANCE = 1e-3  # in steps: rounding stays below, a violation that matters is above


class Axioms(NamedTuple):
    """See the metrics of the same names."""

    triangle_violations: float
    triangle_excess: float
    identity_error: float
    asymmetry: float | None
    true_asymmetry: float | None


@torch.no_grad()
def measure_axioms(agent: Agent, steps: Steps | None, dataset: Dataset, truth: GroundTruth | None, seed: int) -> Axioms:
    """Measure the axioms on the states of a dataset, or on a sample of them, with random triples x, y, z.

    `steps`: the agent's estimates between all states, if they have been computed.

    A model whose goals are states is asked for d((s, a), z) <= d((s, a), m) + 1 + min_b d((m, b), z).
    """
    rng = np.random.default_rng(seed)
    count = len(dataset.observations)
    states = np.sort(rng.choice(count, min(count, MAX_STATES), replace=False))
    observations = agent.scaling(torch.tensor(dataset.observations))
    rows = agent.model.encode(observations[states])
    excesses = []
    for _ in range(_TRIPLES // _CHUNK):
        triples = torch.from_numpy(rng.integers(len(states), size=(3, _CHUNK)))
        actions = torch.from_numpy(rng.integers(agent.model.spec.num_actions, size=(3, _CHUNK)))
        excesses.append(_triangle_excess(agent, rows, triples, actions))
    excess = torch.cat(excesses)
    chosen = np.ix_(states, states)
    estimates = agent.all_steps_to_goal(dataset.observations[states]) if steps is None else steps[chosen]
    exact = None if truth is None else truth.distances_to(states)[states]
    return Axioms(
        triangle_violations=float((excess > TOLERANCE).float().mean()),
        triangle_excess=max(0.0, float(excess.max())),
        identity_error=_identity_error(agent, observations, rows, dataset, rng),
        asymmetry=_asymmetry(estimates.min(-1), exact),
        true_asymmetry=None if exact is None else _asymmetry(exact, exact),
    )


def _triangle_excess(agent: Agent, rows: Tensor, triples: Tensor, actions: Tensor) -> Tensor:
    """d(x, z) - d(x, y) - d(y, z) for triples of states and actions, both (3, triples)."""
    x, y, z = (rows.index_select(0, states) for states in triples)
    a, b, c = actions
    distance = agent.model.distance
    if agent.model.goal_kind == "state-action":
        return distance(x, a, z, c) - distance(x, a, y, b) - distance(y, b, z, c)
    onward = 1 + distance(y, None, z, None).squeeze(-1).amin(-1)
    return distance(x, a, z, c) - distance(x, a, y, b) - onward


def _identity_error(
    agent: Agent, observations: Tensor, rows: Tensor, dataset: Dataset, rng: np.random.Generator
) -> float:
    if agent.model.goal_kind == "state-action":
        actions = torch.arange(agent.model.spec.num_actions).expand(len(rows), -1)
        states = rows[:, None]
        return float(agent.model.distance(states, actions, states, actions).abs().mean())
    transitions = rng.choice(dataset.num_transitions, min(dataset.num_transitions, _CHUNK), replace=False)
    sources = dataset.sources[transitions]
    before, after = (agent.model.encode(observations[dataset.states[steps]]) for steps in (sources, sources + 1))
    action = torch.from_numpy(dataset.actions[transitions].astype(np.int64))
    return float(agent.model.distance(before, action, after, action).abs().mean())


def _asymmetry(distances: NDArray[np.float32], exact: NDArray[np.float32] | None) -> float | None:
    """Mean |d(s, g) - d(g, s)| over different states; with exact distances, over those that reach each other."""
    both_ways = ~np.eye(len(distances), dtype=bool)
    if exact is not None:
        both_ways &= np.isfinite(exact) & np.isfinite(exact.T)
    if not both_ways.any():
        return None
    return float(np.abs(distances[both_ways] - distances.T[both_ways]).mean(dtype=np.float64))
