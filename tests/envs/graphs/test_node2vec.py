"""Random walks follow the edges with the right probabilities; nearby nodes get similar features."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from qrl.common.errors import ConfigError
from qrl.envs.graphs.collector import GraphSettings, collect_graph
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.graphs.graph import Graph
from qrl.envs.graphs.node2vec import WalkSettings, node2vec, random_walks

GENSIM = "gensim is not installed: pip install -e '.[graphs]'"

# After the step 0 -> 1: node 0 is a return, 2 is a neighbor of 0, and 3 is not.
FORK = Graph.from_edges(np.array([0, 0, 1, 1, 1, 3, 2]), np.array([1, 2, 0, 2, 3, 3, 1]))


@pytest.mark.parametrize(("p", "q"), [(1, 1), (4, 1), (1, 4), (0.25, 2)])
def test_second_steps_have_the_weights_of_node2vec(p: float, q: float) -> None:
    settings = WalkSettings.from_values({"p": p, "q": q, "length": 3}, "test")
    walks = random_walks(FORK.edges, np.zeros(60_000, np.int64), settings, np.random.default_rng(0))
    through_1 = walks[walks[:, 1] == 1]
    assert len(through_1) == pytest.approx(30_000, rel=0.05)
    weights = np.array([1 / p, 1, 1 / q])
    frequencies = np.bincount(through_1[:, 2], minlength=4)[[0, 2, 3]] / len(through_1)
    np.testing.assert_allclose(frequencies, weights / weights.sum(), atol=0.015)


def test_walks_follow_edges_and_end_in_dead_ends() -> None:
    rng = np.random.default_rng(1)
    graph = Graph.from_edges(rng.integers(30, size=60), rng.integers(30, size=60))
    edges = set(zip(*graph.edges.nonzero(), strict=True))
    settings = WalkSettings.from_values({"p": 2, "q": 0.5, "length": 8}, "test")
    walks = random_walks(graph.edges, np.arange(graph.num_nodes), settings, rng)
    degree = np.diff(graph.edges.indptr)
    for nodes in walks.tolist():
        for node, successor in pairwise(nodes):
            if successor >= 0:
                assert (node, successor) in edges
            else:
                assert node < 0 or degree[node] == 0
    assert (walks < 0).any()


def test_nearby_nodes_have_similar_features() -> None:
    pytest.importorskip("gensim", reason=GENSIM)
    ring = np.arange(30)
    graph = Graph.from_edges(ring, (ring + 1) % 30)
    settings = WalkSettings.from_values({"walks": 20, "length": 10, "epochs": 10, "window": 2}, "test")
    features = node2vec(graph, 8, settings, seed=3)
    assert features.shape == (30, 8)
    assert np.array_equal(features, node2vec(graph, 8, settings, seed=3))
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    similarity = unit @ unit.T
    distance = np.minimum((ring - ring[:, None]) % 30, (ring[:, None] - ring) % 30)
    assert similarity[distance == 1].mean() > similarity[distance > 5].mean() + 0.2


def test_features_are_cached_for_all_splits_of_a_file(tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason=GENSIM)
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


def test_gensim_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(ConfigError, match=r"needs gensim; .* pip install -e '\.\[graphs\]'"):
        node2vec(FORK, 4, WalkSettings(), seed=0)
