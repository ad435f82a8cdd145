import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrl.agents.planning import empirical_graph
from qrl.agents.planning.empirical_graph import EmpiricalGraph, Memory, empirical_steps
from qrl.envs.dataset import Dataset


@st.composite
def scattered(draw: st.DrawFn) -> Dataset:
    """Short trajectories through few states, some of which nothing connects; not always deterministic."""
    count = draw(st.integers(2, 8))
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    steps = sum(lengths) + len(lengths)
    states = draw(st.lists(st.integers(0, count - 1), min_size=steps, max_size=steps))
    actions = draw(st.lists(st.integers(0, 1), min_size=sum(lengths), max_size=sum(lengths)))
    return Dataset.from_arrays(np.array(states, float)[:, None], actions, lengths, num_actions=2)


@given(scattered())
def test_tables_of_the_components_are_that_of_all_states(dataset: Dataset) -> None:
    count = len(dataset.observations)
    states, goals = (ids.ravel() for ids in np.indices((count, count)))
    steps = EmpiricalGraph(dataset).between(states, goals).reshape(count, count, -1)
    np.testing.assert_array_equal(steps, empirical_steps(dataset))


@given(scattered())
def test_components_are_what_transitions_connect(dataset: Dataset) -> None:
    graph = EmpiricalGraph(dataset)
    before, _, after = graph.transitions
    reach = np.eye(graph.num_states, dtype=bool)
    reach[before, after] = reach[after, before] = True
    for _ in range(graph.num_states):
        reach = reach @ reach
    np.testing.assert_array_equal(graph.components[:, None] == graph.components, reach)


def test_many_small_components_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = Dataset.from_arrays(np.arange(10.0)[:, None], [0] * 5, [1] * 5, num_actions=1)  # 5 of 2 states each
    for largest, fits in ((5, True), (4, False)):  # 5 * 2^2 = 20 entries
        monkeypatch.setattr(empirical_graph, "MAX_TABLE", largest)
        assert EmpiricalGraph(pairs).fits == fits


@given(scattered(), st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_memory_of_another_world_by_its_observations(dataset: Dataset, world: list[int]) -> None:
    """States of the world are numbers; those from 8 on are never in the data."""
    memory = Memory(dataset, np.array(world, np.float32)[:, None])
    known = {int(row[0]): state for state, row in enumerate(dataset.observations)}
    whole = empirical_steps(dataset)
    steps = memory.all_steps()
    for state, goal in np.ndindex(len(world), len(world)):
        before, after = known.get(world[state]), known.get(world[goal])
        expected = np.full(2, np.inf) if before is None or after is None else whole[before, after]
        np.testing.assert_array_equal(steps[state, goal], expected)
    assert memory.empty == (not known.keys() & set(world))
