import numpy as np
import pytest
from hypothesis import given

from qrl.envs.errors import WorldError
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.value_iteration import best_values
from qrl.envs.world import World
from tests.random_worlds import iterated_distances, worlds


def slippery_corridor(length: int, p: float, discount: float = 0.95) -> World:
    """Cells in a row; the only action leads one cell on with probability p, else nowhere."""
    states = np.arange(length)
    forward = np.minimum(states + 1, length - 1)
    return World(
        "slippery",
        np.eye(length),
        np.stack([forward, states], 1)[:, None],
        starts=[0],
        goals=[length - 1],
        probabilities=np.broadcast_to([[p, 1 - p]], (length, 1, 2)),
        discount=discount,
    )


@pytest.mark.parametrize("p", [0.9, 0.5, 0.01])
def test_a_closed_form(p: float) -> None:
    """E[gamma^T] of a geometric T is gamma p / (1 - gamma (1 - p)), and that of k cells is its k-th power."""
    world = slippery_corridor(40, p)
    gamma, truth = world.discount, GroundTruth(world)
    one_cell = gamma * p / (1 - gamma * (1 - p))
    cells = np.arange(40)
    values = best_values(truth.outcomes, 1, cells, gamma)
    expected = np.where(cells >= cells[:, None], one_cell ** (cells - cells[:, None]), 0)
    assert np.abs(values - expected).max() <= 1e-13  # as documented
    reachable = cells >= cells[:, None]
    np.testing.assert_array_equal(np.isfinite(truth.distances), reachable)
    distances = (cells - cells[:, None])[reachable] * np.log(one_cell) / np.log(gamma)
    bound = 1e-13 * gamma**-distances / np.log(1 / gamma)
    rounding = 1e-6 * distances + 1e-6  # float32
    assert (np.abs(truth.distances[reachable] - distances) <= bound + rounding).all()


def test_far_states_are_reached_however_small_their_value() -> None:
    distances = GroundTruth(slippery_corridor(200, 0.5, discount=0.5)).distances
    assert np.isfinite(np.triu(distances)).all()  # 0.5 ** 398 and less
    one_cell = np.log(0.25 / 0.75) / np.log(0.5)
    assert distances[0, -1] == pytest.approx(199 * one_cell, rel=1e-6)


@given(worlds(stochastic=True, max_states=5))
def test_equal_to_plain_value_iteration(world: World) -> None:
    truth = GroundTruth(world)
    if world.deterministic:
        return
    expected = iterated_distances(world)
    np.testing.assert_allclose(truth.distances, expected, rtol=1e-5, atol=1e-5)
    # A quasimetric, also with chance.
    assert (np.diag(truth.distances) == 0).all()
    assert (truth.distances[:, None, :] <= truth.distances[:, :, None] + truth.distances[None] + 1e-4).all()


@given(worlds(max_states=6))
def test_without_chance_it_counts_hops(world: World) -> None:
    truth = GroundTruth(world)
    values = best_values(truth.outcomes, world.num_actions, np.arange(world.num_states), world.discount)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.log(values) / np.log(world.discount), truth.distances, atol=1e-6)


def test_too_small_a_discount_is_refused() -> None:
    """0.25 / 0.75 per cell: its 1,000th power is 0 in double precision, though the goal is reachable."""
    world = slippery_corridor(1000, 0.5, discount=0.5)
    with pytest.raises(WorldError, match=r"discount: 0\.5 is too small for this world: .* choose a larger discount"):
        GroundTruth(world).distances_to(world.goals)
    assert np.isfinite(GroundTruth(slippery_corridor(1000, 0.5)).distances_to(world.goals)).all()


@given(worlds(stochastic=True))
def test_the_values_to_a_goal_do_not_depend_on_other_goals(world: World) -> None:
    truth = GroundTruth(world)
    goals = np.arange(world.num_states)
    whole = best_values(truth.outcomes, world.num_actions, goals, world.discount)
    for goal in goals:
        alone = best_values(truth.outcomes, world.num_actions, goals[[goal]], world.discount)
        np.testing.assert_array_equal(alone[:, 0], whole[:, goal])
