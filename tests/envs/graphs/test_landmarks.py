"""Distances from and to landmarks equal an independent search; sampled pairs are distinct."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrl.envs.errors import DatasetError
from qrl.envs.graphs.graph import Graph
from qrl.envs.graphs.landmarks import FAR, Pairs, Searches, steps_from
from tests.envs.graphs.reference_searches import EDGES, breadth_first, graph_of


@given(EDGES)
def test_steps_equal_textbook_search(edges: list[tuple[int, int]]) -> None:
    graph = graph_of([*edges, (0, 1)])
    for source in range(graph.num_nodes):
        steps = steps_from(graph.edges, source)
        assert np.where(steps == FAR, np.inf, steps).tolist() == breadth_first(graph, source)


def test_a_long_chain() -> None:
    count = 70_000
    chain = Graph.from_edges(np.arange(count - 1), np.arange(1, count))
    assert steps_from(chain.edges, count - 1000).tolist()[-2:] == [998, 999]
    with pytest.raises(DatasetError, match="65,535 edges"):
        steps_from(chain.edges, 0)


def test_keys_identify_ordered_pairs() -> None:
    nodes = np.array([(source, target) for source in range(7) for target in range(7)], np.int32)
    assert Pairs(nodes, np.zeros(49, np.float32)).keys(7).tolist() == list(range(49))


def test_all_landmark_pairs_can_be_sampled() -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(50, size=200), rng.integers(50, size=200))
    count, (landmarks, excluded) = graph.num_nodes, rng.choice(graph.num_nodes, 8, replace=False).reshape(2, 4)
    possible = [
        (source, target)
        for source in range(count)
        for target in range(count)
        if {source, target} & set(landmarks) and not {source, target} & set(excluded)
    ]
    (pairs,) = Searches(graph, landmarks, excluded).sample({"pairs": len(possible)}, None, rng)
    assert sorted(map(tuple, pairs.nodes.tolist())) == possible


def test_both_directions_are_sampled_evenly() -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(200, size=1000), rng.integers(200, size=1000))
    landmarks = rng.choice(graph.num_nodes, 10, replace=False)
    (pairs,) = Searches(graph, landmarks, excluded=landmarks[:0]).sample({"pairs": 2000}, None, rng)
    assert 0.4 < np.isin(pairs.nodes[:, 0], landmarks).mean() < 0.65
    assert len(np.unique(pairs.nodes)) == graph.num_nodes


@pytest.mark.parametrize("unreachable", [None, 0.25])
@given(seed=st.integers(0, 100))
def test_the_fraction_of_unreachable_pairs(unreachable: float | None, seed: int) -> None:
    """Of the 9 pairs with landmark 1 of the chain 0 -> 1 -> 2 -> 3 -> 4, 5 are reachable."""
    chain = Graph.from_edges(np.arange(4), np.arange(1, 5))
    searches = Searches(chain, np.array([1]), excluded=np.array([], np.int64))
    (pairs,) = searches.sample({"pairs": 4}, unreachable, np.random.default_rng(seed))
    assert np.isinf(pairs.distances).sum() == (round(4 / 9 * 4) if unreachable is None else 1)
