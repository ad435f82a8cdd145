import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrl import make_world
from qrl.envs.world import World
from qrl.envs.worlds.slip import with_slip
from tests.random_worlds import worlds


def dense(world: World) -> np.ndarray:
    """(states, actions, states): the probability of each next state."""
    table = np.zeros((world.num_states, world.num_actions, world.num_states))
    states, actions = np.indices(world.transitions.shape[:2])
    outcomes = world.transitions.reshape(world.num_states, world.num_actions, -1)
    weights = np.ones(outcomes.shape) if world.deterministic else world.probabilities
    np.add.at(table, (states[..., None], actions[..., None], outcomes), weights)
    return table


@given(worlds(), worlds(stochastic=True), st.sampled_from([0.0, 0.1, 0.75]))
def test_other_actions_share_the_slip(certain: World, chance: World, slip: float) -> None:
    for world in (certain, chance):
        before, after = dense(world), dense(with_slip(world, slip))
        actions = world.num_actions
        for action in range(actions):
            others = [before[:, other] for other in range(actions) if other != action]
            share = slip if others else 0
            expected = (1 - share) * before[:, action] + share * np.mean(others or [before[:, action]], axis=0)
            np.testing.assert_allclose(after[:, action], expected, atol=1e-12)


def test_a_slippery_layout() -> None:
    world = make_world("layout", layout="corridor", slip=0.1)
    assert world.name == "corridor with slip 0.1"
    assert not world.deterministic
    assert world.layout is not None
    assert not world.has_env
    assert make_world("layout", layout="corridor").has_env
    assert make_world("layout", layout="corridor", slip=0.1, discount=0.9) != world


@pytest.mark.parametrize("slip", [-0.1, 1])
def test_bad_slip(slip: float) -> None:
    with pytest.raises(ValueError, match="slip"):
        make_world("layout", slip=slip)
