from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from qrl.envs.errors import LayoutError, WorldError
from qrl.envs.layout import load_layout
from qrl.envs.world import World
from tests.random_worlds import worlds


def two_states(**changes: Any) -> World:
    """An action that stays and one that changes the state."""
    values: dict[str, Any] = {
        "observations": [[0, 0], [1, 0]],
        "transitions": [[0, 1], [1, 0]],
        "starts": [0],
        "goals": [1],
    }
    return World("two", **values | changes)


def test_a_world_by_hand() -> None:
    world = two_states()
    assert (world.num_states, world.num_actions, world.deterministic) == (2, 2, True)
    assert repr(world) == "World('two', 2 states, 2 actions, deterministic)"
    assert world.observations.dtype == np.float32
    assert not world.notices
    assert world == World("another name", world.observations, world.transitions, world.starts, world.goals)
    assert world != two_states(goals=[0, 1])


STOCHASTIC = {"transitions": [[[0, 1], [1, 0]]] * 2, "probabilities": [[[0.25, 0.75], [1, 0]]] * 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": [0, 1]}, r"^world two: observations must have the shape \(states, dim\), not \(2,\)$"),
        ({"observations": [[0], [np.nan]]}, "the observation of state 1 is not finite"),
        ({"observations": [["a"], ["b"]]}, "observations must be an array of numbers"),
        ({"observations": [[0], [1, 2]]}, "observations are not an array"),
        ({"transitions": [[0, 1]]}, r"transitions must have the shape \(2, actions\)"),
        ({"transitions": [[0, 1], [1, 2]]}, "action 1 of state 1 leads to state 2, but states are numbered"),
        ({"transitions": [[0, -1], [1, 0]]}, "action 1 of state 0 leads to state -1"),
        ({"transitions": [[0.0, 1.0], [1.0, 0.0]]}, "transitions must be an array of integers"),
        ({"probabilities": [[1, 1], [1, 1]]}, "probabilities need transitions of the shape"),
        (STOCHASTIC | {"probabilities": None}, "need their probabilities"),
        (STOCHASTIC | {"probabilities": [[[1], [1]]] * 2}, r"must have the shape of the transitions, \(2, 2, 2\)"),
        (STOCHASTIC | {"probabilities": [[[0.25, 0.75], [0.5, 0.4]]] * 2},
         r"action 1 in state 0 are \[0.5, 0.4\]; they must be at least 0 and sum to 1"),
        (STOCHASTIC | {"probabilities": [[[1.5, -0.5], [1, 0]]] * 2}, "action 0 in state 0"),
        (STOCHASTIC | {"probabilities": [[[np.nan, 1], [1, 0]]] * 2}, "action 0 in state 0"),
        ({"starts": []}, "starts must"),
        ({"starts": [0, 0]}, "starts must be different states from 0 to 1"),
        ({"goals": [2]}, "goals must be different states from 0 to 1"),
        ({"cells": [[0, 0]]}, r"cells must be \(x, y\) from 0 for each of 2 states"),
        ({"discount": 1}, "discount must be between 0 and 1"),
    ],
)  # fmt: skip
def test_bad_worlds(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WorldError, match=message):
        two_states(**changes)


def test_too_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrl.envs.world.MAX_STATES", 1)
    with pytest.raises(WorldError, match="2 states, but at most 1 are supported"):
        two_states()


def test_states_that_look_the_same_get_a_notice() -> None:
    (notice,) = two_states(observations=[[1, 2], [1, 2]]).notices
    assert notice.startswith("the 2 states of two have only 1 different observations")
    assert not two_states(observations=[[0.0, 1], [-0.0, 2]]).notices


def test_certain_outcomes_are_deterministic() -> None:
    world = two_states(transitions=STOCHASTIC["transitions"], probabilities=[[[0, 1], [1, 0]]] * 2)
    assert world.deterministic
    assert world.transitions.tolist() == [[1, 1], [1, 1]]


@given(worlds(stochastic=True))
def test_next_states_follow_the_probabilities(world: World) -> None:
    states, actions = (ids.ravel() for ids in np.indices(world.transitions.shape[:2]))
    rng = np.random.default_rng(0)
    repeated = np.tile(states, 400), np.tile(actions, 400)
    following = world.next_states(*repeated, rng)
    assert world.possible(*repeated, following).all()
    counts = np.zeros((world.num_states, world.num_actions, world.num_states))
    np.add.at(counts, (*repeated, following), 1 / 400)
    expected = np.zeros_like(counts)
    probabilities = np.ones((*world.transitions.shape, 1)) if world.deterministic else world.probabilities
    index = (states.reshape(counts.shape[:2])[..., None], actions.reshape(counts.shape[:2])[..., None])
    np.add.at(expected, (*index, world.transitions.reshape(probabilities.shape)), probabilities)
    assert np.abs(counts - expected).max() < 0.15  # six standard deviations
    impossible = np.argwhere(expected == 0)
    assert not world.possible(*impossible.T).any()


def test_cells() -> None:
    world = two_states(cells=[[3, 4], [3, 4]])
    assert world.state_at(3, 4) == 1  # the goal
    with pytest.raises(WorldError, match=r"no state is drawn in the cell \(0, 0\)"):
        world.state_at(0, 0)
    with pytest.raises(WorldError, match="it has no map"):
        two_states().state_at(0, 0)
    with pytest.raises(LayoutError, match="is a wall"):
        load_layout("traps").world.state_at(0, 0)


def test_only_a_layout_as_it_was_written_has_an_environment() -> None:
    layout = load_layout("corridor")
    assert layout.world.has_env
    assert not two_states().has_env
    changed = World("x", layout.observations, layout.transitions[:, ::-1], [0], [1], cells=layout.cells, layout=layout)
    assert not changed.has_env


def test_impossible_outcomes_are_never_drawn() -> None:
    """Ten times 0.1 are added up to less than 1; the largest random number lies above."""
    chances = [0.1] * 10 + [0]
    world = two_states(transitions=[[[0] * 10 + [1]]] * 2, probabilities=[[chances]] * 2)
    largest = SimpleNamespace(random=lambda size: np.full(size, np.nextafter(1, 0)))
    assert world.probabilities[0, 0].cumsum()[-1] <= largest.random(1)
    assert world.next_states(np.array([0]), np.array([0]), largest).tolist() == [0]  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{"cells": [[1, 1], [2, 1]]}, STOCHASTIC])
def test_arrays_are_read_only(changes: dict[str, Any]) -> None:
    for key, value in vars(two_states(**changes)).items():
        assert not isinstance(value, np.ndarray) or not value.flags.writeable, key
