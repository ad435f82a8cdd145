"""Distances equal an independent search, of all pairs and of landmarks; splits are disjoint."""

from collections import deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from numpy.typing import NDArray

from qrl.common.errors import ConfigError
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.graphs.collector import GraphSettings, all_distances, collect_graph, landmark_pairs, make_random_graph
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.graphs.graph import Graph
from qrl.envs.graphs.landmarks import FAR, Searches, steps_from
from qrl.envs.graphs.random_graphs import GENERATORS

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


def slow_steps(graph: Graph, source: int) -> list[float]:
    """Breadth-first search as in a textbook."""
    steps = [float("inf")] * graph.num_nodes
    steps[source] = 0
    queue = deque([source])
    while queue:
        node = queue.popleft()
        for other in graph.edges.indices[graph.edges.indptr[node] : graph.edges.indptr[node + 1]]:
            if steps[other] == float("inf"):
                steps[other] = steps[node] + 1
                queue.append(other)
    return steps


def slow_distances(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Floyd and Warshall's algorithm."""
    distances = np.where(lengths > 0, lengths, np.inf)
    np.fill_diagonal(distances, 0)
    for between in range(len(distances)):
        distances = np.minimum(distances, distances[:, between, None] + distances[between])
    return distances


def graph_of(edges: list[tuple[int, int]]) -> Graph:
    return Graph.from_edges(*np.array(edges).T)


@given(EDGES)
def test_search_against_the_textbook(edges: list[tuple[int, int]]) -> None:
    graph = graph_of([*edges, (0, 1)])
    for source in range(graph.num_nodes):
        found = steps_from(graph.edges, source)
        assert np.where(found == FAR, np.inf, found).tolist() == slow_steps(graph, source)


@pytest.mark.parametrize("kind", GENERATORS)
@given(seed=st.integers(0, 1000), nodes=st.integers(10, 40))
def test_all_pairs_against_floyd_and_warshall(kind: str, seed: int, nodes: int) -> None:
    settings = GraphSettings.from_values({"kind": kind, "nodes": nodes, "seed": seed, "feature_size": 4}, "test")
    graph = make_random_graph(settings)
    expected = slow_distances(graph.edges.toarray())
    np.testing.assert_allclose(all_distances(graph), expected, rtol=1e-12)
    data = collect_graph(settings)
    pairs = np.concatenate([data.training_pairs, data.validation_pairs])
    distances = np.concatenate([data.training_distances, data.validation_distances])
    assert len(np.unique(pairs, axis=0)) == nodes**2, "every ordered pair once"
    np.testing.assert_allclose(distances, expected[tuple(pairs.T)], rtol=1e-6)
    assert len(data.training_pairs) == round(0.7 * nodes**2)


@given(
    edges=EDGES,
    seed=st.integers(0, 1000),
    share=st.sampled_from([None, 0.0, 0.3]),
    validation_landmarks=st.sampled_from([0, 0.3]),
)
def test_landmark_pairs(
    edges: list[tuple[int, int]], seed: int, share: float | None, validation_landmarks: float
) -> None:
    graph = graph_of([*edges, (0, 1), (1, 2), (10, 2)])
    values = {"kind": "edge-list", "landmarks": 3, "pairs": 4, "validation_pairs": 3, "split_seed": seed}
    changes = {"unreachable": share, "validation_landmarks": validation_landmarks}
    settings = GraphSettings.from_values(values | changes, "test")
    try:
        training, validation = landmark_pairs(graph, settings)
    except DatasetError:
        reject()  # too few pairs with a way, or too few without
    exact = np.array([slow_steps(graph, source) for source in range(graph.num_nodes)])
    for pairs, count in ((training, 4), (validation, 3)):
        assert pairs.distances.tolist() == exact[tuple(pairs.nodes.T)].tolist()
        assert len(np.unique(pairs.nodes, axis=0)) == len(pairs.distances) == count
        if share is not None:
            assert np.isinf(pairs.distances).sum() == round(share * count)
    assert not {*map(tuple, training.nodes.tolist())} & {*map(tuple, validation.nodes.tolist())}


@pytest.mark.parametrize(("share", "sizes"), [(0, (10, 10)), (0.3, (7, 3))])
def test_validation_may_have_landmarks_of_its_own(share: float, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(300, size=3000), rng.integers(300, size=3000))
    values = {"kind": "edge-list", "landmarks": 10, "pairs": 1000, "validation_pairs": 300}
    settings = GraphSettings.from_values(values | {"validation_landmarks": share}, "test")
    # A landmark is in very many pairs of its side.
    training, validation = (
        set(np.flatnonzero(np.bincount(pairs.nodes.ravel()) > 20).tolist()) for pairs in landmark_pairs(graph, settings)
    )
    assert (len(training), len(validation)) == sizes
    assert training == validation if share == 0 else not training & validation


def test_all_pairs_of_the_landmarks_can_be_drawn() -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(50, size=200), rng.integers(50, size=200))
    count, (own, others) = graph.num_nodes, rng.choice(graph.num_nodes, 8, replace=False).reshape(2, 4)
    possible = [(a, b) for a in range(count) for b in range(count) if {a, b} & set(own) and not {a, b} & set(others)]
    (pairs,) = Searches(graph, own, apart=others).sample({"pairs": len(possible)}, None, rng)
    assert sorted(map(tuple, pairs.nodes.tolist())) == possible


def test_both_directions_are_drawn_evenly() -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(200, size=1000), rng.integers(200, size=1000))
    landmarks = rng.choice(graph.num_nodes, 10, replace=False)
    (pairs,) = Searches(graph, landmarks, apart=landmarks[:0]).sample({"pairs": 2000}, None, rng)
    away = np.isin(pairs.nodes[:, 0], landmarks).mean()
    assert 0.4 < away < 0.65
    assert len(np.unique(pairs.nodes)) == graph.num_nodes


def test_a_long_chain() -> None:
    count = 70_000
    chain = Graph.from_edges(np.arange(count - 1), np.arange(1, count))
    assert steps_from(chain.edges, count - 1000).tolist()[-2:] == [998, 999]
    with pytest.raises(DatasetError, match="65,535 edges"):
        steps_from(chain.edges, 0)


@pytest.mark.parametrize("kind", GENERATORS)
def test_random_graphs_are_repeatable(kind: str) -> None:
    def collected(**changes: int | float) -> GraphDataset:
        return collect_graph(GraphSettings.from_values({"kind": kind, "nodes": 50} | changes, "test"))

    first, again, other, split = collected(), collected(), collected(seed=1), collected(split_seed=1)
    assert first.content_hash == again.content_hash
    assert not np.array_equal(first.features, other.features)
    assert np.array_equal(first.features, split.features)
    assert not np.array_equal(first.training_pairs, split.training_pairs)
    smaller = collected(fraction=0.2)
    assert np.array_equal(smaller.training_pairs, first.training_pairs[: len(smaller.training_pairs)])
    np.testing.assert_allclose(first.features.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(first.features.std(0), 1, atol=1e-4)


def test_the_kinds_are_what_they_are_called() -> None:
    shares = {}
    for kind in GENERATORS:
        graph = make_random_graph(GraphSettings.from_values({"kind": kind}, "test"))
        shares[kind] = (graph.num_edges / graph.num_nodes, np.isinf(all_distances(graph)).mean())
    assert shares["random-dense"][0] > 20
    assert shares["random-dense"][1] == 0
    assert 1 < shares["random-sparse"][0] < 2
    assert 0.4 < shares["random-sparse"][1] < 0.8
    assert 2 < shares["random-block"][0] < 4
    assert 0.4 < shares["random-block"][1] < 0.6  # blocks are never entered from later ones


# Files

NODES = 30


def random_data() -> GraphDataset:
    return collect_graph(GraphSettings.from_values({"kind": "random-sparse", "nodes": NODES, "feature_size": 5}, "t"))


def test_the_file(tmp_path: Path) -> None:
    data = random_data()
    data.save(tmp_path / "graph.npz")
    loaded = GraphDataset.load(tmp_path / "graph.npz")
    assert loaded.content_hash == data.content_hash
    assert loaded.header.unreachable["training"] == pytest.approx(np.isinf(data.training_distances).mean())
    with pytest.raises(DatasetError, match="qrl-trajectories"):
        Dataset.load(tmp_path / "graph.npz")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("names", np.arange(3), "names: 3, but there are features of 30 nodes"),
        ("features", np.full((NODES, 5), np.nan, np.float32), "features: not all are finite"),
        ("training_pairs", np.zeros((3, 2), np.int32), "two nodes for every distance"),
        ("validation_distances", np.full(270, -1, np.float32), "at least 0"),
        ("validation_distances", np.full(270, np.nan, np.float32), "at least 0"),
        ("training_distances", np.ones(630, np.float32), "to itself must be 0"),
        ("training_pairs", np.full((630, 2), NODES, np.int32), "nodes from 0 to 29"),
        ("training_distances", np.ones(630), "must be 1-dimensional float32"),
    ],
)
def test_invalid_data_does_not_exist(field: str, value: NDArray[np.generic], message: str) -> None:
    data = random_data()
    with pytest.raises(DatasetError, match=message):
        GraphDataset(**data.arrays | {field: value}, header=data.header)


def test_overlapping_splits_are_refused() -> None:
    data = random_data()
    changed = data.arrays
    changed["validation_pairs"] = np.concatenate([data.training_pairs[:2], data.validation_pairs[2:]])
    changed["validation_distances"] = np.concatenate([data.training_distances[:2], data.validation_distances[2:]])
    with pytest.raises(DatasetError, match="training and validation share 2 pairs"):
        GraphDataset(**changed, header=data.header)


# Edge lists


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"file": "web.txt"}, "for a file say kind=edge-list"),
        ({"kind": "random-block", "nodes": 4}, "random-block needs at least 10"),
        ({"kind": "edge-list", "walk": {"p": 1e6}}, "walk.p"),
    ],
)
def test_settings_that_do_not_fit(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GraphSettings.from_values(values, "test")


CYCLE = "".join(f"{node} {(node + 1) % 20}\n" for node in range(20))


def edge_list(path: Path, **changes: object) -> GraphSettings:
    path.write_text(CYCLE)
    values = {"kind": "edge-list", "file": str(path), "landmarks": 10, "pairs": 100, "validation_pairs": 20}
    return GraphSettings.from_values(values | {"feature_size": 3} | changes, "test")


def test_features_from_files(tmp_path: Path) -> None:
    table = np.random.default_rng(0).normal(size=(20, 3))
    np.save(tmp_path / "features.npy", table)
    settings = edge_list(tmp_path / "edges.txt", features=str(tmp_path / "features.npy"))
    data = collect_graph(settings)
    np.testing.assert_allclose(data.features, table, rtol=1e-6)
    source, target = data.training_pairs.T
    assert data.training_distances.tolist() == ((target - source) % 20).tolist()
    assert data.names.tolist() == list(range(20))
    data.save(tmp_path / "first.npz")
    again = collect_graph(edge_list(tmp_path / "edges.txt", features=str(tmp_path / "first.npz"), split_seed=1))
    assert np.array_equal(again.features, data.features)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"landmarks": 21}, "landmarks: 21 are wanted, but the graph has 20 nodes"),
        ({"file": None}, "file: kind=edge-list needs"),
        ({"pairs": 10_000}, r"^pairs \+ validation_pairs: 10,020 with a way are wanted"),
        ({"pairs": 10_000, "validation_landmarks": 0.2}, "^pairs: 10,000 with a way are wanted"),
        ({"validation_pairs": 10_000, "validation_landmarks": 0.2}, "^validation_pairs: 10,000 with a way are wanted"),
        ({"unreachable": 0.5}, "60 without a way are wanted"),
        ({"feature_size": 4}, r"needs \(20, 4\) floats"),
        ({"features": "nowhere.npy"}, r"nowhere\.npy cannot be read"),
    ],
)
def test_mistakes(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.zeros((20, 3)))
    settings = edge_list(tmp_path / "edges.txt", **{"features": str(tmp_path / "features.npy")} | changes)
    with pytest.raises((ConfigError, DatasetError), match=message):
        collect_graph(settings)


def test_features_with_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.array([{"a": 1}] * 20, object), allow_pickle=True)
    settings = edge_list(tmp_path / "edges.txt", features=str(tmp_path / "features.npy"))
    with pytest.raises(DatasetError, match="cannot be read as a table"):
        collect_graph(settings)
