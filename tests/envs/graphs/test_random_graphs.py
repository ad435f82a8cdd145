"""Random graphs: distances, structure and features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrl.envs.graphs.collector import FEATURE_DISCOUNT, all_distances
from qrl.envs.graphs.random_graphs import GENERATORS, anchor_features, random_graph
from tests.envs.graphs.reference_searches import floyd_warshall


@pytest.mark.parametrize("kind", GENERATORS)
@given(seed=st.integers(0, 1000), nodes=st.integers(10, 40))
def test_all_distances_equal_floyd_warshall(kind: str, seed: int, nodes: int) -> None:
    graph = random_graph(kind, nodes, np.random.default_rng(seed))
    np.testing.assert_allclose(all_distances(graph), floyd_warshall(graph.edges.toarray()), rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "degrees", "unreachable"),
    [
        ("random-dense", (20, 30), (0, 0)),
        ("random-sparse", (1, 2), (0.4, 0.8)),
        ("random-block", (2, 4), (0.4, 0.6)),  # earlier blocks are unreachable from later ones
    ],
)
def test_structure(kind: str, degrees: tuple[float, float], unreachable: tuple[float, float]) -> None:
    graph = random_graph(kind, 300, np.random.default_rng(0))
    assert degrees[0] < graph.num_edges / graph.num_nodes < degrees[1]
    assert unreachable[0] <= np.isinf(all_distances(graph)).mean() <= unreachable[1]


@pytest.mark.parametrize(("noise", "ratio"), [(0, (0, 0.8)), (0.1, (0, 0.8)), (100, (0.97, 1.03))])
def test_features_are_standardized_and_informative_up_to_their_noise(noise: float, ratio: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    distances = all_distances(random_graph("random-block", 100, rng))
    features = anchor_features(distances, 32, FEATURE_DISCOUNT, noise, rng)
    np.testing.assert_allclose(features.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(features.std(0), 1, atol=1e-4)
    apart = np.linalg.norm(features[:, None] - features, axis=-1)
    block = np.arange(100) // 20
    same_block = block[:, None] == block
    within = apart[same_block & ~np.eye(100, dtype=bool)].mean()
    assert ratio[0] < within / apart[~same_block].mean() < ratio[1]
