from collections import deque
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings

from qrl import make_world
from qrl.envs.errors import LayoutError, WorldError
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.layout import Layout, load_layout
from qrl.envs.registration import ENV_ID
from qrl.envs.world import World
from tests.layouts import BUILTIN, layouts
from tests.random_worlds import searched_distances, worlds

STEPS = [(0, -1), (1, 0), (0, 1), (-1, 0)]
AGAINST = {0: "v", 1: "<", 2: "^", 3: ">"}  # the door that blocks each action


def reference_distances(layout: Layout) -> np.ndarray:
    """Breadth-first search from every state on the text itself."""
    rows = layout.text.split("\n")
    states = [(x, y) for y, row in enumerate(rows) for x, cell in enumerate(row) if cell != "#"]
    state_ids = {cell: state for state, cell in enumerate(states)}
    distances = np.full((len(states), len(states)), np.inf)
    for start in states:
        depth = {start: 0}
        queue = deque([start])
        while queue:
            x, y = queue.popleft()
            for action, (dx, dy) in enumerate(STEPS):
                target = (x + dx, y + dy)
                cells = rows[y][x] + rows[y + dy][x + dx]
                if rows[y + dy][x + dx] != "#" and AGAINST[action] not in cells and target not in depth:
                    depth[target] = depth[x, y] + 1
                    queue.append(target)
        for cell, steps in depth.items():
            distances[state_ids[start], state_ids[cell]] = steps
    return distances


def stepped_transitions(layout: Layout) -> np.ndarray:
    """The transition table of the environment, by one reset and one step per entry."""
    env = gymnasium.make(ENV_ID, layout=layout, disable_env_checker=True)
    cells = [tuple(cell) for cell in layout.cells.tolist()]
    table = np.empty((len(cells), 4), int)
    for state, cell in enumerate(cells):
        goal = cells[state - 1]
        for action in range(4):
            _, info = env.reset(options={"start": cell, "goal": goal})
            assert info["state"] == state
            table[state, action] = env.step(action)[-1]["state"]
    return table


@pytest.mark.parametrize("layout", BUILTIN, ids=lambda layout: layout.name)
def test_transitions_equal_stepping_the_environment(layout: Layout) -> None:
    np.testing.assert_array_equal(ground_truth(layout).transitions, stepped_transitions(layout))


@pytest.mark.parametrize("layout", BUILTIN, ids=lambda layout: layout.name)
def test_distances_equal_breadth_first_search(layout: Layout) -> None:
    np.testing.assert_array_equal(ground_truth(layout).distances, reference_distances(layout))


@given(layouts())
def test_distances_of_random_layouts(layout: Layout) -> None:
    truth = GroundTruth(layout)
    expected = reference_distances(layout)
    assert truth.strongly_connected == np.isfinite(expected).all()
    np.testing.assert_array_equal(truth.distances, expected)


def test_connectivity_needs_no_distances() -> None:
    truth = GroundTruth(load_layout("six-rooms"))
    assert truth.strongly_connected
    assert "distances" not in vars(truth)


@settings(max_examples=30)
@given(layouts(max_side=5))
def test_transitions_of_random_layouts(layout: Layout) -> None:
    truth = GroundTruth(layout)
    try:
        truth.check_tasks()
    except LayoutError:
        reachable = reference_distances(layout)[np.ix_(layout.starts, layout.goals)]
        assert np.isinf(reachable).all(1).any()
        return
    np.testing.assert_array_equal(truth.transitions, stepped_transitions(layout))


@given(layouts())
def test_distances_are_a_quasimetric_of_single_steps(layout: Layout) -> None:
    truth = GroundTruth(layout)
    distances = truth.distances
    assert (np.diag(distances) == 0).all()
    assert (distances[:, None, :] <= distances[:, :, None] + distances[None]).all()
    # Bellman: the distance to another state is one step plus the minimum over next states.
    backup = 1 + distances[truth.transitions].min(1)
    np.testing.assert_array_equal(np.where(np.eye(len(distances), dtype=bool), 0, backup), distances)


def test_documented_figures() -> None:
    truth = ground_truth(load_layout("six-rooms"))
    assert truth.strongly_connected
    assert truth.distances.max() == 45
    assert round(float(np.abs(truth.distances - truth.distances.T).mean()), 2) == 7.43
    assert not ground_truth(load_layout("traps")).strongly_connected
    assert ground_truth(load_layout("corridor")).strongly_connected


def test_a_door_by_hand() -> None:
    # States 0 1 2 in the upper row, 3 below the door, which blocks only moves against its arrow.
    truth = GroundTruth(Layout("#####\n#S>G#\n##.##\n#####"))
    up, right, down, left = range(4)
    assert truth.transitions[0, right] == 1
    assert truth.transitions[1, right] == 2
    assert truth.transitions[1, left] == 1  # out of the door, against its arrow
    assert truth.transitions[2, left] == 2  # into the door, against its arrow
    assert truth.transitions[1, down] == 3
    assert truth.transitions[3, up] == 1
    assert truth.distances[3].tolist() == [np.inf, 1, 2, 0]


def test_greedy_actions_reduce_the_distance() -> None:
    truth = ground_truth(load_layout("six-rooms"))
    states = np.arange(len(truth.transitions))
    for goal in truth.layout.goals[::29]:
        mask = truth.greedy(states, np.full_like(states, goal))
        reduces = truth.distances[truth.transitions, goal] == truth.distances[:, [goal]] - 1
        np.testing.assert_array_equal(mask[states != goal], reduces[states != goal])


def test_tasks_are_uniform_over_reachable_goals() -> None:
    layout = Layout("#######\n#S>.GG#\n##v####\n##G..S#\n#######")
    truth = GroundTruth(layout)
    starts, goals = truth.sample_tasks(np.random.default_rng(0), 30_000)
    pairs, counts = np.unique(np.stack([starts, goals], 1), axis=0, return_counts=True)
    first, second = layout.starts
    trap = layout.goals[2]
    assert pairs.tolist() == [[first, goal] for goal in layout.goals] + [[second, trap]]
    expected = np.array([5000, 5000, 5000, 15000])
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_a_start_without_a_reachable_goal_is_refused() -> None:
    truth = GroundTruth(Layout("######\n#S#SG#\n######", "walled"))
    with pytest.raises(LayoutError, match="walled: no goal can be reached from the start in row 2, column 2"):
        truth.check_tasks()


def test_equal_layouts_share_one_ground_truth() -> None:
    text = load_layout("corridor").text
    assert ground_truth(Layout(text)) is ground_truth(Layout(text, "another name"))


# Worlds other than layouts


@given(worlds())
def test_distances_of_random_worlds(world: World) -> None:
    truth, expected = GroundTruth(world), searched_distances(world)
    np.testing.assert_array_equal(truth.distances, expected)
    assert truth.strongly_connected == np.isfinite(expected).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qrl.envs.ground_truth.MAX_TABLE", 1)
        lazy, goals = GroundTruth(world), world.goals
        np.testing.assert_array_equal(lazy.distances_to(goals), expected[:, goals])
        starts = np.resize(world.starts, len(goals))
        np.testing.assert_array_equal(lazy.between(starts, goals), expected[starts, goals])
        np.testing.assert_array_equal(lazy.reaching(world.transitions[:, 0] * 0, 0), expected_reaching(world, 0, 0))
        assert "distances" not in vars(lazy)


def expected_reaching(world: World, action: int, goal: int) -> np.ndarray:
    """From which states taking always the same action leads to the goal."""
    states = np.arange(world.num_states)
    reached: np.ndarray = states == goal
    for _ in states:
        reached |= reached[world.transitions[states, action]]
    return reached


@given(worlds())
def test_tasks_of_random_worlds(world: World) -> None:
    truth, expected = GroundTruth(world), searched_distances(world)
    pairs = [(s, g) for s in world.starts for g in world.goals if s != g and np.isfinite(expected[s, g])]
    assert list(zip(*truth.all_tasks(), strict=True)) == pairs
    if {start for start, _ in pairs} < set(world.starts):
        with pytest.raises(WorldError, match="world random: no goal can be reached from the start"):
            truth.sample_tasks(np.random.default_rng(0), 1)
        return
    sampled = list(zip(*truth.sample_tasks(np.random.default_rng(0), 200 * len(pairs)), strict=True))
    assert set(sampled) == set(pairs)


@given(worlds(stochastic=True, max_states=5))
def test_greedy_actions_of_stochastic_worlds(world: World) -> None:
    truth = GroundTruth(world)
    remaining = truth.after_action(truth.distances)
    states, goals = (ids.ravel() for ids in np.indices(truth.distances.shape))
    mask = truth.greedy(states, goals)
    left = remaining[states, :, goals]
    np.testing.assert_array_equal(mask, left <= left.min(1, keepdims=True) + 1e-4)
    np.testing.assert_array_equal(mask, truth.greedy(states, goals, truth.distances_to(np.arange(world.num_states))))
    backup = 1 + remaining.min(1)
    elsewhere = ~np.eye(world.num_states, dtype=bool)
    np.testing.assert_allclose(backup[elsewhere], truth.distances[elsewhere], atol=1e-4, rtol=1e-5)


def test_a_stochastic_world_solves_only_for_the_goals_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = GroundTruth(make_world("layout", layout="traps", slip=0.1))
    solved: list[int] = []
    values_to = GroundTruth._values_to

    def recorded(truth: GroundTruth, goals: np.ndarray) -> np.ndarray:
        solved.extend(goals)
        return values_to(truth, goals)

    monkeypatch.setattr(GroundTruth, "_values_to", recorded)
    goals = truth.world.goals[[5, 2, 5]]
    distances = truth.distances_to(goals)
    truth.distances_to(truth.world.goals[:3])
    assert sorted(solved) == sorted(truth.world.goals[[0, 1, 2, 5]])  # each of them once
    assert truth.distances_to(goals[:0]).shape == (truth.world.num_states, 0)
    np.testing.assert_array_equal(distances, truth.distances[:, goals])


def test_equal_worlds_with_and_without_a_layout() -> None:
    layout = load_layout("corridor")
    bare = replace(layout.world, layout=None)
    assert bare == layout.world
    with pytest.raises(WorldError, match="it has no layout"):
        _ = ground_truth(bare).layout
    assert ground_truth(layout).layout == layout
