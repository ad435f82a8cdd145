"""The Markov chain of a policy, against enumeration of all paths, a closed form and sampled episodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrl import make_world
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.planning.chains import solve_chain
from qrl.agents.planning.planner import Ids, RandomPolicy, TablePolicy, follow
from qrl.agents.planning.references import oracle_steps
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.world import World
from tests.envs.test_value_iteration import slippery_corridor
from tests.random_worlds import worlds


def policy_of(world: World, table: Ids) -> TablePolicy:
    return TablePolicy(table, world.observations, RandomPolicy(world.num_actions, 0))


def enumerated(world: World, table: Ids, start: int, goal: int, max_steps: int) -> tuple[float, float]:
    """P(T <= max_steps) and E[gamma^T], by following every path."""
    if start == goal:
        return 1.0, 1.0
    if max_steps == 0:
        return 0.0, 0.0
    action = table[start, goal]
    success = value = 0.0
    for p, end in zip(world.probabilities[start, action], world.transitions[start, action], strict=True):
        later = enumerated(world, table, int(end), goal, max_steps - 1) if p else (0.0, 0.0)
        success, value = success + p * later[0], value + p * world.discount * later[1]
    return success, value


@given(worlds(stochastic=True, max_states=4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_every_path_is_counted(world: World, max_steps: int, random: st.DataObject) -> None:
    if world.deterministic:
        return
    rng = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    table = rng.integers(world.num_actions, size=(world.num_states, world.num_states))
    probability, steps = solve_chain(policy_of(world, table), GroundTruth(world), max_steps)
    for start, goal in np.ndindex(probability.shape):
        success, value = enumerated(world, table, start, goal, max_steps)
        assert probability[start, goal] == pytest.approx(success, abs=1e-12)
        with np.errstate(divide="ignore"):
            assert steps[start, goal] == pytest.approx(np.log(value) / np.log(world.discount), rel=1e-5, abs=1e-5)


def test_a_closed_form() -> None:
    """One cell of a slippery corridor: P(T <= k) = 1 - (1 - p)^k."""
    world = slippery_corridor(3, 0.25)
    policy = policy_of(world, np.zeros((3, 3), np.int64))
    outcome = follow(policy, GroundTruth(world), np.array([0, 2]), np.array([1, 1]), 7)
    assert outcome.success.tolist() == pytest.approx([1 - 0.75**7, 0])
    assert outcome.cause.tolist() == ["cap", "cap"]


@given(worlds(stochastic=True, max_states=5))
def test_the_oracle_is_optimal(world: World) -> None:
    truth = GroundTruth(world)
    if world.deterministic:
        return
    oracle = TablePolicy.greedy(oracle_steps(truth), world.observations, 0)
    _, steps = solve_chain(oracle, truth, 2000)
    np.testing.assert_allclose(steps, truth.distances, atol=2e-3, rtol=1e-3)


def test_sampled_episodes_agree_with_the_chain() -> None:
    world = make_world("layout", layout="traps", slip=0.2)
    truth = GroundTruth(world)
    starts, goals = (np.repeat(ids[:5], 2000) for ids in truth.all_tasks())
    oracle = TablePolicy.greedy(oracle_steps(truth), world.observations, 0)
    for policy in (oracle, RandomPolicy(4, 0)):
        exact = follow(policy, truth, starts, goals, 40).success
        sampled = policy.walk(truth, starts, goals, 40)
        assert sampled.success.dtype == bool
        rates = sampled.success.reshape(5, -1).mean(1)
        assert np.abs(rates - exact[::2000]).max() < 0.06  # more than five standard deviations


def test_the_exhaustive_protocol_is_exact_and_the_papers_samples() -> None:
    import qrl

    dataset = qrl.collect(world={"name": "teleport"}, trajectories=30)
    evaluator = Evaluator(dataset)
    oracle = evaluator.score(evaluator.reference("oracle"))
    assert oracle.success_rate == pytest.approx(2 / 3, abs=1e-6)  # one outlet of three is a trap
    assert oracle["spl"] == pytest.approx(1)
    assert oracle["excess_steps"] == pytest.approx(0, abs=1e-4)
    assert oracle["failures.cap"] == round(oracle["tasks"] / 3)  # type: ignore[operator]
    assert oracle["distances.reachable.absolute_error"] == 0
    assert sum(row["tasks"] or 0 for row in oracle.success_by_distance) == oracle["tasks"]
    assert any("the world is stochastic" in notice for notice in evaluator.notices)
    sampled = Evaluator(dataset, "paper", 400)
    rate = sampled.score(sampled.reference("oracle")).success_rate
    assert rate == pytest.approx(2 / 3, abs=0.12)
