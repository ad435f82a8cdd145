"""Collecting graph datasets: exact distances, disjoint splits, reproducibility, and settings that are refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from qrl.common.errors import ConfigError
from qrl.envs.errors import DatasetError
from qrl.envs.graphs.collector import GraphSettings, collect_graph, landmark_pairs, make_random_graph
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.graphs.graph import Graph
from qrl.envs.graphs.random_graphs import GENERATORS
from tests.envs.graphs.reference_searches import EDGES, breadth_first, floyd_warshall, graph_of


def graph_settings(**values: object) -> GraphSettings:
    return GraphSettings.from_values(values, "test")


# Random graphs


@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize(("seed", "nodes"), [(0, 10), (1, 31)])
def test_every_ordered_pair_is_in_one_split(kind: str, seed: int, nodes: int) -> None:
    settings = graph_settings(kind=kind, nodes=nodes, seed=seed, feature_size=4)
    expected = floyd_warshall(make_random_graph(settings).edges.toarray())
    dataset = collect_graph(settings)
    pairs = np.concatenate([dataset.training_pairs, dataset.validation_pairs])
    distances = np.concatenate([dataset.training_distances, dataset.validation_distances])
    assert len(np.unique(pairs, axis=0)) == len(pairs) == nodes**2
    np.testing.assert_allclose(distances, expected[tuple(pairs.T)], rtol=1e-6)
    assert len(dataset.training_pairs) == round(0.7 * nodes**2)
    assert dataset.header.unreachable["training"] == pytest.approx(np.isinf(dataset.training_distances).mean())
    assert dataset.header.unreachable["validation"] == pytest.approx(np.isinf(dataset.validation_distances).mean())


@pytest.mark.parametrize("kind", GENERATORS)
def test_seeds_are_reproducible_and_independent(kind: str) -> None:
    def collected(**changes: int | float) -> GraphDataset:
        return collect_graph(graph_settings(kind=kind, nodes=50, **changes))

    dataset, other_graph, other_split = collected(), collected(seed=1), collected(split_seed=1)
    assert dataset.content_hash == collected().content_hash
    assert not np.array_equal(dataset.features, other_graph.features)
    assert np.array_equal(dataset.features, other_split.features)
    assert not np.array_equal(dataset.training_pairs, other_split.training_pairs)
    smaller = collected(fraction=0.2).training_pairs
    assert len(smaller) == 500
    assert np.array_equal(smaller, dataset.training_pairs[:500])


# Landmark pairs


@given(
    edges=EDGES,
    seed=st.integers(0, 1000),
    unreachable=st.sampled_from([None, 0.0, 0.3]),
    validation_landmarks=st.sampled_from([0, 0.3]),
)
def test_landmark_pairs_are_exact_and_disjoint(
    edges: list[tuple[int, int]], seed: int, unreachable: float | None, validation_landmarks: float
) -> None:
    graph = graph_of([*edges, (0, 1), (1, 2), (10, 2)])
    settings = graph_settings(
        kind="edge-list",
        landmarks=3,
        pairs=4,
        validation_pairs=3,
        split_seed=seed,
        unreachable=unreachable,
        validation_landmarks=validation_landmarks,
    )
    try:
        training, validation = landmark_pairs(graph, settings)
    except DatasetError:
        reject()  # too few reachable or unreachable pairs
    exact = np.array([breadth_first(graph, source) for source in range(graph.num_nodes)])
    for pairs, count in ((training, 4), (validation, 3)):
        assert pairs.distances.tolist() == exact[tuple(pairs.nodes.T)].tolist()
        assert len(np.unique(pairs.nodes, axis=0)) == len(pairs.distances) == count
        if unreachable is not None:
            assert np.isinf(pairs.distances).sum() == round(unreachable * count)
    assert not {*map(tuple, training.nodes.tolist())} & {*map(tuple, validation.nodes.tolist())}


@pytest.mark.parametrize(("fraction", "sizes"), [(0, (10, 10)), (0.3, (7, 3))])
def test_landmarks_can_be_held_out_for_validation(fraction: float, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(300, size=3000), rng.integers(300, size=3000))
    settings = graph_settings(
        kind="edge-list", landmarks=10, pairs=1000, validation_pairs=300, validation_landmarks=fraction
    )
    # Only landmarks occur in many pairs of a split.
    training, validation = (
        set(np.flatnonzero(np.bincount(pairs.nodes.ravel()) > 20).tolist()) for pairs in landmark_pairs(graph, settings)
    )
    assert (len(training), len(validation)) == sizes
    assert training == validation if fraction == 0 else not training & validation


# Edge lists


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"file": "web.txt"}, "file: random-dense does not read a file; use kind=edge-list"),
        ({"kind": "random-block", "nodes": 4}, "random-block needs at least 10"),
        ({"kind": "edge-list", "walk": {"p": 1e6}}, "walk.p"),
    ],
)
def test_invalid_settings_are_refused(values: dict[str, object], message: str) -> None:
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
    dataset = collect_graph(edge_list(tmp_path / "edges.txt", features=str(tmp_path / "features.npy")))
    np.testing.assert_allclose(dataset.features, table, rtol=1e-6)
    source, target = dataset.training_pairs.T
    assert dataset.training_distances.tolist() == ((target - source) % 20).tolist()
    assert dataset.names.tolist() == list(range(20))
    dataset.save(tmp_path / "first.npz")
    second = collect_graph(edge_list(tmp_path / "edges.txt", features=str(tmp_path / "first.npz"), split_seed=1))
    assert np.array_equal(second.features, dataset.features)


def test_features_of_another_graph_are_refused(tmp_path: Path) -> None:
    collect_graph(graph_settings(nodes=21, feature_size=3)).save(tmp_path / "other.npz")
    with pytest.raises(DatasetError, match=r"other\.npz belongs to a graph with different nodes"):
        collect_graph(edge_list(tmp_path / "edges.txt", features=str(tmp_path / "other.npz")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"landmarks": 21}, "landmarks: must be at most 20, the nodes of the graph"),
        ({"file": None}, "file: kind=edge-list needs an edge list"),
        ({"pairs": 10_000}, r"^pairs \+ validation_pairs: 10,020 reachable pairs requested"),
        ({"pairs": 10_000, "validation_landmarks": 0.2}, "^pairs: 10,000 reachable pairs requested"),
        ({"validation_pairs": 10_000, "validation_landmarks": 0.2}, "^validation_pairs: 10,000 reachable pairs"),
        ({"unreachable": 0.5}, "60 unreachable pairs requested"),
        ({"feature_size": 4}, r"must be floating point of shape \(20, 4\)"),
        ({"features": "nowhere.npy"}, r"nowhere\.npy cannot be read"),
    ],
)
def test_impossible_requests_are_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.zeros((20, 3)))
    settings = edge_list(tmp_path / "edges.txt", **{"features": str(tmp_path / "features.npy")} | changes)
    with pytest.raises((ConfigError, DatasetError), match=message):
        collect_graph(settings)


def test_features_with_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.array([{"a": 1}] * 20, object), allow_pickle=True)
    settings = edge_list(tmp_path / "edges.txt", features=str(tmp_path / "features.npy"))
    with pytest.raises(DatasetError, match="cannot be read as an array"):
        collect_graph(settings)
