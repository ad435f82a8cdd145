"""Random walks follow the edges with the right probabilities; features tell near from far."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from qrl.envs.graphs.collector import GraphSettings, collect_graph
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.graphs.graph import Graph
from qrl.envs.graphs.node2vec import WalkSettings, node2vec, walk

# 0 -> 1, and from 1 to 0, 2 and 3; 0 -> 2. So after 0 -> 1, going to 0 is back, 2 is near 0, 3 is far.
FORK = Graph.from_edges(np.array([0, 0, 1, 1, 1, 3, 2]), np.array([1, 2, 0, 2, 3, 3, 1]))


@pytest.mark.parametrize(("p", "q"), [(1, 1), (4, 1), (1, 4), (0.25, 2)])
def test_second_steps_have_the_weights_of_node2vec(p: float, q: float) -> None:
    settings = WalkSettings.from_values({"p": p, "q": q, "length": 3}, "test")
    walks = walk(FORK.edges, np.zeros(60_000, np.int64), settings, np.random.default_rng(0))
    there = walks[walks[:, 1] == 1]
    assert len(there) == pytest.approx(30_000, rel=0.05)
    weights = np.array([1 / p, 1, 1 / q])  # back to 0, to 2 which 0 leads to, to 3 which it does not
    found = np.bincount(there[:, 2], minlength=4)[[0, 2, 3]] / len(there)
    np.testing.assert_allclose(found, weights / weights.sum(), atol=0.015)


def test_walks_follow_edges_and_end_in_dead_ends() -> None:
    rng = np.random.default_rng(1)
    graph = Graph.from_edges(rng.integers(30, size=60), rng.integers(30, size=60))
    edges = set(zip(*graph.edges.nonzero(), strict=True))
    settings = WalkSettings.from_values({"p": 2, "q": 0.5, "length": 8}, "test")
    walks = walk(graph.edges, np.arange(graph.num_nodes), settings, rng)
    degree = np.diff(graph.edges.indptr)
    for nodes in walks.tolist():
        for here, following in pairwise(nodes):
            if following >= 0:
                assert (here, following) in edges
            else:
                assert here < 0 or degree[here] == 0
    assert (walks < 0).any()


def test_near_nodes_have_near_features() -> None:
    pytest.importorskip("gensim", reason="gensim is not installed: pip install 'qrl[graphs]'")
    ring = np.arange(30)
    graph = Graph.from_edges(ring, (ring + 1) % 30)
    settings = WalkSettings.from_values({"walks": 20, "length": 10, "epochs": 10, "window": 2}, "test")
    features = node2vec(graph, 8, settings, seed=3)
    assert features.shape == (30, 8)
    assert np.array_equal(features, node2vec(graph, 8, settings, seed=3))
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    likeness = unit @ unit.T
    apart = np.minimum((ring - ring[:, None]) % 30, (ring[:, None] - ring) % 30)
    assert likeness[apart == 1].mean() > likeness[apart > 5].mean() + 0.2


def test_features_are_made_once_for_all_splits_of_a_file(tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason="gensim is not installed: pip install 'qrl[graphs]'")
    file = tmp_path / "ring.txt"

    def collected(nodes: int, split_seed: int) -> GraphDataset:
        text = "".join(f"{node} {(node + 1) % nodes}\n" for node in range(nodes))
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        values = {"file": str(file), "kind": "edge-list", "feature_size": 4, "landmarks": 4, "split_seed": split_seed}
        return collect_graph(GraphSettings.from_values(values | {"pairs": 20, "validation_pairs": 10}, "test"))

    first, other, larger = collected(20, 0), collected(20, 1), collected(21, 0)
    assert first.features is other.features
    assert not np.array_equal(first.training_pairs, other.training_pairs)
    assert larger.num_nodes == 21
