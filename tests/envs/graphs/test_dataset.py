"""Graph datasets: the file, and invalid data."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qrl.envs import npz
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.graphs.collector import GraphSettings, collect_graph
from qrl.envs.graphs.dataset import GraphDataset, GraphHeader

NODES = 30


@pytest.fixture(scope="module")
def dataset() -> GraphDataset:
    return collect_graph(GraphSettings(kind="random-sparse", nodes=NODES, feature_size=5))


def test_round_trip(dataset: GraphDataset, tmp_path: Path) -> None:
    dataset.save(tmp_path / "graph.npz")
    loaded = GraphDataset.load(tmp_path / "graph.npz")
    assert loaded.content_hash == dataset.content_hash
    assert loaded.header == dataset.header
    for name, array in dataset.arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], array, err_msg=name)
    with pytest.raises(DatasetError, match="not a qrl-trajectories file: its header says 'qrl-graph-distances'"):
        Dataset.load(tmp_path / "graph.npz")


def test_repr_shows_sizes(dataset: GraphDataset) -> None:
    edges = dataset.header.num_edges
    assert f"30 nodes with 5 features, {edges} edges, 630 training and 270 validation pairs" in repr(dataset)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("names", np.arange(3), "names: 3 entries, but the features have 30 rows"),
        ("features", np.full((NODES, 5), np.nan, np.float32), "features: all values must be finite"),
        ("training_pairs", np.zeros((3, 2), np.int32), "every distance needs two nodes"),
        ("validation_distances", np.full(270, -1, np.float32), "at least 0"),
        ("validation_distances", np.full(270, np.nan, np.float32), "at least 0"),
        ("training_distances", np.ones(630, np.float32), "to itself must be 0"),
        ("training_pairs", np.full((630, 2), NODES, np.int32), "nodes must be from 0 to 29"),
        ("training_distances", np.ones(630), "must be 1-dimensional float32"),
    ],
)
def test_invalid_data_is_refused(dataset: GraphDataset, name: str, value: NDArray[np.generic], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        GraphDataset(**dataset.arrays | {name: value}, header=dataset.header)


def test_overlapping_splits_are_refused(dataset: GraphDataset) -> None:
    arrays = dataset.arrays
    for kind in ("pairs", "distances"):
        training, validation = arrays[f"training_{kind}"], arrays[f"validation_{kind}"]
        arrays[f"validation_{kind}"] = np.concatenate([training[:2], validation[2:]])
    with pytest.raises(DatasetError, match="training and validation share 2 pairs"):
        GraphDataset(**arrays, header=dataset.header)


# The format is fixed: what an earlier release wrote must load, with the same hash.

HEADER: dict[str, Any] = {
    "source": "the generator random-sparse",
    "settings": {"kind": "random-sparse", "nodes": 2},
    "num_edges": 1,
    "self_loops": 0,
    "repeated_edges": 0,
    "unreachable": {"training": 0.0, "validation": 1.0},
    "versions": {"qrl": "0.1.0", "numpy": "2.0.0"},
}


def test_old_files_load(tmp_path: Path) -> None:
    arrays: npz.Arrays = {
        "features": np.array([[0.5], [2]], np.float32),
        "names": np.array([3, 7]),
        "training_pairs": np.array([[0, 1], [0, 0]], np.int32),
        "training_distances": np.array([1, 0], np.float32),
        "validation_pairs": np.array([[1, 0]], np.int32),
        "validation_distances": np.array([np.inf], np.float32),
    }
    npz.write(tmp_path / "old.npz", GraphDataset.FORMAT, HEADER, arrays)
    loaded = GraphDataset.load(tmp_path / "old.npz")
    assert loaded.header == GraphHeader(**HEADER)
    assert loaded.content_hash == "2864f2f08d4344a6cad1c21d46d4d02f61aa432d7686a2ea77c834e39b95b837"
