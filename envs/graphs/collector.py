"""From settings to data: a random graph with all its pairs, or an edge list with pairs of landmarks."""

import functools
import zipfile
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.sparse.csgraph import shortest_path

from qrl.common.errors import ConfigError
from qrl.common.settings import Settings
from qrl.envs.errors import DatasetError
from qrl.envs.graphs.dataset import GraphDataset, Header
from qrl.envs.graphs.graph import Graph, read_edge_list
from qrl.envs.graphs.landmarks import Pairs, Searches
from qrl.envs.graphs.node2vec import WalkSettings, node2vec
from qrl.envs.graphs.random_graphs import BLOCKS, GENERATORS, anchor_features, random_graph


class GraphSettings(Settings):
    kind: Literal["random-dense", "random-sparse", "random-block", "edge-list"] = Field(
        "random-dense", description="a kind of random graph, or edge-list for a file"
    )
    seed: int = Field(0, ge=0, lt=2**63, description="of the graph and the features of its nodes")
    split_seed: int = Field(0, ge=0, lt=2**63, description="of which pairs are for training")
    feature_size: int = Field(64, ge=1, le=2**14, description="numbers for each node")
    nodes: int = Field(300, ge=2, le=5000, description="random graphs: number of nodes; all ordered pairs are taken")
    fraction: float = Field(0.7, gt=0, lt=1, description="random graphs: share of the pairs for training")
    file: str | None = Field(None, description="edge-list: the file, plain or gzipped, two node ids a line")
    landmarks: int = Field(100, ge=2, description="edge-list: nodes whose distances from and to all others are found")
    pairs: int = Field(2_500_000, ge=1, description="edge-list: training pairs")
    validation_pairs: int = Field(150_000, ge=1, description="edge-list: validation pairs")
    validation_landmarks: float = Field(
        0,
        ge=0,
        lt=1,
        description="edge-list: share of the landmarks that only validation has, to see what unseen ones cost",
    )
    unreachable: float | None = Field(
        None, ge=0, le=1, description="edge-list: share of pairs without a way; by default as they come"
    )
    features: str = Field(
        "node2vec",
        description="edge-list: node2vec, an .npy file of (nodes, feature_size) numbers, or a file like OUT.npz",
    )
    walk: WalkSettings = Field(WalkSettings(), description="node2vec's walks")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.file is not None and self.kind != "edge-list":
            raise ValueError(f"file: {self.kind} needs none; for a file say kind=edge-list")
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
    """(nodes, nodes): the lengths of the shortest ways, infinite where there is none."""
    return np.asarray(shortest_path(graph.edges, method="D"))


def make_random_graph(settings: GraphSettings) -> Graph:
    return random_graph(settings.kind, settings.nodes, _rng(settings.seed, list(GENERATORS).index(settings.kind)))


def _random(settings: GraphSettings) -> GraphDataset:
    graph = make_random_graph(settings)
    distances = all_distances(graph)
    features = anchor_features(distances, settings.feature_size, FEATURE_DISCOUNT, _rng(settings.seed, 100))
    count = distances.size
    training = round(settings.fraction * count)
    if not 0 < training < count:
        raise ConfigError(f"fraction: {settings.fraction} of {count:,} pairs leaves none on one side")
    order = _rng(settings.split_seed, 101).permutation(count)
    nodes = np.stack(np.divmod(order, settings.nodes), axis=1).astype(np.int32)
    flat = distances.ravel()[order].astype(np.float32)
    halves = [Pairs(nodes[part], flat[part]) for part in (slice(training), slice(training, None))]
    used = settings.model_dump(include={"kind", "seed", "split_seed", "feature_size", "nodes", "fraction"})
    return _dataset(graph, features, halves, f"the generator {settings.kind}", used)


# Edge lists

# Kept as long as the process, because the datasets of a study differ in nothing but their pairs.
_walked = functools.lru_cache(maxsize=1)(node2vec)


@functools.lru_cache(maxsize=1)
def _graph(path: Path, changed: int) -> Graph:
    """`changed`: the time of the file's last change; after another it is read again."""
    return read_edge_list(path)


def _from_file(settings: GraphSettings) -> GraphDataset:
    if settings.file is None:
        raise ConfigError("file: kind=edge-list needs the file of the graph, as file=...")
    path = Path(settings.file)
    try:
        graph = _graph(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error
    halves = landmark_pairs(graph, settings)
    if settings.features == "node2vec":
        features = _walked(graph, settings.feature_size, settings.walk, settings.seed)
    else:
        features = _read_features(settings.features, graph, settings.feature_size)
    unused = {"nodes", "fraction", "kind", "file"} | (set() if settings.features == "node2vec" else {"walk"})
    used = settings.model_dump(mode="json", exclude=unused) | {"file": path.name}
    return _dataset(graph, features, halves, f"the edge list {path.name}", used)


def landmark_pairs(graph: Graph, settings: GraphSettings) -> list[Pairs]:
    """Training and validation pairs, of the same landmarks or each of its own."""
    if settings.landmarks > graph.num_nodes:
        raise ConfigError(f"landmarks: {settings.landmarks:,} are wanted, but the graph has {graph.num_nodes:,} nodes")
    rng = _rng(settings.split_seed, 102)
    landmarks = rng.choice(graph.num_nodes, settings.landmarks, replace=False)
    wanted = {"pairs": settings.pairs, "validation_pairs": settings.validation_pairs}
    if settings.validation_landmarks == 0:
        return Searches(graph, landmarks, apart=landmarks[:0]).sample(wanted, settings.unreachable, rng)
    held_out = min(settings.landmarks - 1, max(1, round(settings.validation_landmarks * settings.landmarks)))
    ours, theirs = landmarks[held_out:], landmarks[:held_out]
    made = []
    # A pair of a landmark of one side with one of the other could be in both, so it is in neither.
    for (key, count), own, apart in zip(wanted.items(), (ours, theirs), (theirs, ours), strict=True):
        made += Searches(graph, own, apart).sample({key: count}, settings.unreachable, rng)
    return made


def _read_features(path: str, graph: Graph, size: int) -> NDArray[np.float32]:
    if path.endswith(".npz"):
        other = GraphDataset.load(path)
        if not np.array_equal(other.names, graph.names):
            raise DatasetError(f"{path} is of a graph with other nodes")
        table: NDArray[Any] = other.features
    else:
        try:
            # Mapped, so that a false size in the file takes no memory.
            table = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise DatasetError(f"{path} cannot be read as a table of features: {error}") from error
    wanted = (graph.num_nodes, size)
    if not isinstance(table, np.ndarray) or table.shape != wanted or not np.issubdtype(table.dtype, np.floating):
        found = f"{table.shape} {table.dtype}" if isinstance(table, np.ndarray) else "several arrays"
        raise DatasetError(
            f"{path} holds {found}, but the graph needs {wanted} floats: a row for each node, in the order of "
            "their ids; feature_size=... changes the columns"
        )
    return np.array(table, np.float32)


def _dataset(
    graph: Graph, features: NDArray[np.float32], halves: list[Pairs], source: str, used: dict[str, object]
) -> GraphDataset:
    training, validation = halves
    return GraphDataset(
        features=features,
        names=graph.names.astype(np.int64),
        training_pairs=training.nodes,
        training_distances=training.distances,
        validation_pairs=validation.nodes,
        validation_distances=validation.distances,
        header=Header(
            source=source,
            settings=used,
            num_edges=graph.num_edges,
            self_loops=graph.self_loops,
            repeated_edges=graph.repeated,
            unreachable={
                name: float(np.isinf(pairs.distances).mean())
                for name, pairs in (("training", training), ("validation", validation))
            },
        ),
    )
