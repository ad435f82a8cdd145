"""Collect graph datasets: all pairs of a random graph, or landmark pairs of an edge list."""

import functools
import math
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.sparse.csgraph import shortest_path

from qrl.common.errors import ConfigError
from qrl.common.files import regular_file
from qrl.common.settings import PathText, Settings
from qrl.common.text import clip
from qrl.envs import npy
from qrl.envs.errors import DatasetError
from qrl.envs.graphs.dataset import GraphDataset, GraphHeader
from qrl.envs.graphs.graph import Graph, read_edge_list
from qrl.envs.graphs.landmarks import Pairs, Searches
from qrl.envs.graphs.node2vec import WalkSettings, node2vec
from qrl.envs.graphs.random_graphs import BLOCKS, GENERATORS, anchor_features, random_graph


class GraphSettings(Settings):
    kind: Literal["random-dense", "random-sparse", "random-block", "edge-list"] = Field(
        "random-dense", description="type of random graph, or edge-list to read a file"
    )
    seed: int = Field(0, ge=0, lt=2**63, description="random seed of the graph and the node features")
    split_seed: int = Field(0, ge=0, lt=2**63, description="random seed of the training/validation split")
    feature_size: int = Field(64, ge=1, le=2**14, description="dimension of the node features")
    nodes: int = Field(300, ge=2, le=5000, description="random graphs: number of nodes; all ordered pairs are used")
    fraction: float = Field(0.7, gt=0, lt=1, description="random graphs: fraction of the pairs used for training")
    feature_noise: float = Field(
        0.1,
        ge=0,
        le=1000,
        description="random graphs: noise in the node features, relative to what they say of distances",
    )
    file: PathText | None = Field(None, description="edge-list: the file, plain or gzipped, two node ids per line")
    landmarks: int = Field(100, ge=2, description="edge-list: nodes with known distances from and to all others")
    pairs: int = Field(2_500_000, ge=1, description="edge-list: number of training pairs")
    validation_pairs: int = Field(150_000, ge=1, description="edge-list: number of validation pairs")
    validation_landmarks: float = Field(
        0,
        ge=0,
        lt=1,
        description="edge-list: fraction of the landmarks held out for validation; 0: both splits use all",
    )
    unreachable: float | None = Field(
        None, ge=0, le=1, description="edge-list: fraction of unreachable pairs; by default that of all landmark pairs"
    )
    features: PathText = Field(
        "node2vec",
        description="edge-list: node2vec, an .npy file of shape (nodes, feature_size), or an earlier OUT.npz",
    )
    walk: WalkSettings = Field(WalkSettings(), description="random walks of node2vec")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.file is not None and self.kind != "edge-list":
            raise ValueError(f"file: {self.kind} does not read a file; use kind=edge-list")
        if self.kind == "random-block" and self.nodes < 2 * BLOCKS:
            raise ValueError(f"nodes: random-block needs at least {2 * BLOCKS} (got {self.nodes})")
        return self


def collect_graph(settings: GraphSettings) -> GraphDataset:
    return _from_file(settings) if settings.kind == "edge-list" else _random(settings)


def _rng(seed: int, *purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose))


# Random graphs

FEATURE_DISCOUNT = 0.9


def all_distances(graph: Graph) -> NDArray[np.float64]:
    """(nodes, nodes): shortest-path lengths, infinite for unreachable pairs."""
    return np.asarray(shortest_path(graph.edges, method="D"))


def make_random_graph(settings: GraphSettings) -> Graph:
    return random_graph(settings.kind, settings.nodes, _rng(settings.seed, list(GENERATORS).index(settings.kind)))


def _random(settings: GraphSettings) -> GraphDataset:
    graph = make_random_graph(settings)
    distances = all_distances(graph)
    rng = _rng(settings.seed, 100)
    features = anchor_features(distances, settings.feature_size, FEATURE_DISCOUNT, settings.feature_noise, rng)
    count = distances.size
    training = round(settings.fraction * count)
    if not 0 < training < count:
        raise ConfigError(f"fraction: {settings.fraction} of {count:,} pairs leaves a split empty; move it towards 0.5")
    order = _rng(settings.split_seed, 101).permutation(count)
    nodes = np.stack(np.divmod(order, settings.nodes), axis=1).astype(np.int32)
    flat = distances.ravel()[order].astype(np.float32)
    splits = [Pairs(nodes[part], flat[part]) for part in (slice(training), slice(training, None))]
    used = {"kind", "seed", "split_seed", "feature_size", "feature_noise", "nodes", "fraction"}
    return _build(graph, features, splits, f"the generator {settings.kind}", settings.model_dump(include=used))


# Edge lists

# Cached, because the datasets of a study differ only in their pairs.
_cached_node2vec = functools.lru_cache(maxsize=1)(node2vec)


@functools.lru_cache(maxsize=1)
def _cached_graph(path: Path, modified: int) -> Graph:
    """`modified`: modification time of the file, so that a changed file is read again."""
    return read_edge_list(path)


def _from_file(settings: GraphSettings) -> GraphDataset:
    if settings.file is None:
        raise ConfigError("file: kind=edge-list needs an edge list; add file=PATH")
    path = regular_file(settings.file, DatasetError)
    graph = _cached_graph(path, path.stat().st_mtime_ns)
    splits = landmark_pairs(graph, settings)
    if settings.features == "node2vec":
        features = _cached_node2vec(graph, settings.feature_size, settings.walk, settings.seed)
    else:
        features = _read_features(settings.features, graph, settings.feature_size)
    unused = {"nodes", "fraction", "kind", "file"} | (set() if settings.features == "node2vec" else {"walk"})
    used_settings = settings.model_dump(mode="json", exclude=unused) | {"file": path.name}
    return _build(graph, features, splits, f"the edge list {path.name}", used_settings)


def landmark_pairs(graph: Graph, settings: GraphSettings) -> list[Pairs]:
    """Training and validation pairs, with shared or disjoint landmarks."""
    if settings.landmarks > graph.num_nodes:
        raise ConfigError(f"landmarks: must be at most {graph.num_nodes:,}, the nodes of the graph")
    rng = _rng(settings.split_seed, 102)
    landmarks = rng.choice(graph.num_nodes, settings.landmarks, replace=False)
    counts = {"pairs": settings.pairs, "validation_pairs": settings.validation_pairs}
    if settings.validation_landmarks == 0:
        return Searches(graph, landmarks, excluded=landmarks[:0]).sample(counts, settings.unreachable, rng)
    held_out = min(settings.landmarks - 1, max(1, round(settings.validation_landmarks * settings.landmarks)))
    training, validation = landmarks[held_out:], landmarks[:held_out]
    splits = []
    # A pair of a training and a validation landmark could be in both splits, so it is in neither.
    for key, included, excluded in (("pairs", training, validation), ("validation_pairs", validation, training)):
        splits += Searches(graph, included, excluded).sample({key: counts[key]}, settings.unreachable, rng)
    return splits


def _read_features(path: str, graph: Graph, size: int) -> NDArray[np.float32]:
    shape = (graph.num_nodes, size)
    if not path.endswith(".npz"):
        return np.array(_read_array(path, shape), np.float32)
    other = GraphDataset.load(path)
    if not np.array_equal(other.names, graph.names):
        raise DatasetError(f"features: {path} belongs to a graph with different nodes")
    _check_features(path, other.features.shape, other.features.dtype, shape)
    return other.features


def _read_array(path: str, shape: tuple[int, int]) -> NDArray[Any]:
    """The array of an .npy file; no memory is allocated for a wrong shape."""
    try:
        with regular_file(path, DatasetError).open("rb") as file:
            header = npy.read_header(file)
            _check_features(path, header.shape, header.dtype, shape)
            content = file.read(math.prod(shape) * header.dtype.itemsize)
            array: NDArray[Any] = np.frombuffer(content, header.dtype)
            return array.reshape(shape, order="F" if header.fortran_order else "C")
    except DatasetError:
        raise
    except (OSError, ValueError) as error:  # a ValueError also if there are too few bytes
        raise DatasetError(f"features: {path} cannot be read as an array: {clip(error)}") from error


def _check_features(path: str, shape: tuple[int, ...], dtype: "np.dtype[Any]", expected: tuple[int, int]) -> None:
    if shape != expected or not np.issubdtype(dtype, np.floating):
        raise DatasetError(
            f"features: {path} contains {dtype} of shape {clip(shape)}, but must be floating point of shape "
            f"{expected}: one row per node, sorted by node id; feature_size=... sets the number of columns"
        )


def _build(
    graph: Graph, features: NDArray[np.float32], splits: list[Pairs], source: str, used_settings: dict[str, object]
) -> GraphDataset:
    training, validation = splits
    return GraphDataset(
        features=features,
        names=graph.names.astype(np.int64),
        training_pairs=training.nodes,
        training_distances=training.distances,
        validation_pairs=validation.nodes,
        validation_distances=validation.distances,
        header=GraphHeader(
            source=source,
            settings=used_settings,
            num_edges=graph.num_edges,
            self_loops=graph.self_loops,
            repeated_edges=graph.repeated,
            unreachable={
                name: float(np.isinf(pairs.distances).mean())
                for name, pairs in (("training", training), ("validation", validation))
            },
        ),
    )
