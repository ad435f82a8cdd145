import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qrl import make_world
from qrl.envs.ground_truth import GroundTruth


@settings(max_examples=25)
@given(
    st.integers(5, 25), st.integers(0, 16), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(0, 99),
    st.sampled_from([0.01, 0.25, 0.5]),
)  # fmt: skip
def test_everything_is_reachable(size: int, doors: int, loops: float, seed: int, tasks: float) -> None:
    world = make_world("maze", size=size, doors=doors, loops=loops, seed=seed, tasks=tasks)
    layout, side = world.layout, size // 2
    assert layout is not None
    assert (layout.width, layout.height) == (2 * side + 1, 2 * side + 1)
    assert GroundTruth(world).strongly_connected
    assert len(layout.doors) <= doors
    rooms = np.zeros(layout.grid.shape, bool)
    rooms[1::2, 1::2] = True
    assert (layout.grid[rooms] != "#").all()
    assert len(layout.starts) == len(layout.goals) == max(1, int(side**2 * tasks))
    inner_walls = 2 * side * (side - 1) - (side**2 - 1)  # those that a tree leaves
    opened = world.num_states - (2 * side**2 - 1)
    assert opened == round(inner_walls * loops)
    if loops == 0:
        assert len(layout.doors) == 0


def test_seeds() -> None:
    assert make_world("maze") == make_world("maze")
    assert make_world("maze") != make_world("maze", seed=1)
    world = make_world("maze", size=20)
    assert world.layout is not None
    assert len(world.layout.doors) == 10
    assert world.has_env


def test_doors_stand_between_rooms_and_make_ways_longer() -> None:
    world = make_world("maze", size=41, doors=16)
    assert world.layout is not None
    doors = world.layout.doors
    assert len(doors) == 16
    neighbours = world.transitions[doors]
    assert ((neighbours != doors[:, None]).sum(1) == 1).all()  # out of a door there is one way
    distances = GroundTruth(world).distances
    assert (distances != distances.T).any()


@pytest.mark.parametrize("size", [4, 200])
def test_bad_sizes(size: int) -> None:
    with pytest.raises(ValueError, match="size"):
        make_world("maze", size=size)
