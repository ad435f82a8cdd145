"""Graph distance datasets: node pairs with their distances, split into training and validation, and node features."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from qrl.common.settings import Settings
from qrl.common.versions import versions
from qrl.envs import npz
from qrl.envs.errors import DatasetError
from qrl.envs.graphs.landmarks import Pairs


class GraphHeader(Settings):
    """Provenance of a graph dataset."""

    source: str
    settings: dict[str, Any] = Field({}, description="settings of collect-graph")
    num_edges: int = Field(ge=0)
    self_loops: int = Field(0, ge=0)
    repeated_edges: int = Field(0, ge=0)
    unreachable: dict[str, float] = Field({}, description="fraction of unreachable pairs per split")
    versions: dict[str, str] = Field(default_factory=versions)


@dataclass(frozen=True, eq=False, repr=False)
class GraphDataset(npz.Data):
    """Features of all nodes, and distances of disjoint training and validation pairs; valid by construction.

    features: (nodes, dim); names: (nodes,), the ids of the nodes in the edge list.
    training_pairs, validation_pairs: (pairs, 2) nodes; their distances: (pairs,), infinite for unreachable pairs.
    """

    features: NDArray[np.float32]
    names: NDArray[np.int64]
    training_pairs: NDArray[np.int32]
    training_distances: NDArray[np.float32]
    validation_pairs: NDArray[np.int32]
    validation_distances: NDArray[np.float32]
    header: GraphHeader

    FORMAT = npz.Format(
        "qrl-graph-distances",
        1,
        {
            "features": npz.ArraySpec(np.float32, 2),
            "names": npz.ArraySpec(np.int64, 1),
            "training_pairs": npz.ArraySpec(np.int32, 2),
            "training_distances": npz.ArraySpec(np.float32, 1),
            "validation_pairs": npz.ArraySpec(np.int32, 2),
            "validation_distances": npz.ArraySpec(np.float32, 1),
        },
    )
    HEADER = GraphHeader

    @property
    def num_nodes(self) -> int:
        return len(self.features)

    @property
    def num_samples(self) -> int:
        """What a learner draws from: an epoch."""
        return len(self.training_pairs)

    @property
    def training(self) -> Pairs:
        return Pairs(self.training_pairs, self.training_distances)

    @property
    def validation(self) -> Pairs:
        return Pairs(self.validation_pairs, self.validation_distances)

    def __repr__(self) -> str:
        return (
            f"GraphDataset({self.num_nodes:,} nodes with {self.features.shape[1]} features, {self.header.num_edges:,} "
            f"edges, {len(self.training_pairs):,} training and {len(self.validation_pairs):,} validation pairs, "
            f"from {self.header.source})"
        )

    def validate(self) -> None:
        if len(self.names) != self.num_nodes:
            raise DatasetError(f"names: {len(self.names):,} entries, but the features have {self.num_nodes:,} rows")
        if not np.isfinite(self.features).all():
            raise DatasetError("features: all values must be finite")
        for split, pairs in (("training", self.training), ("validation", self.validation)):
            self._check_pairs(split, pairs)
        shared = np.intersect1d(self.training.keys(self.num_nodes), self.validation.keys(self.num_nodes))
        if len(shared):
            source, target = divmod(int(shared[0]), self.num_nodes)
            raise DatasetError(
                f"training and validation share {len(shared):,} pairs, such as ({source}, {target}); keep them disjoint"
            )

    def _check_pairs(self, split: str, pairs: Pairs) -> None:
        if pairs.nodes.shape != (len(pairs.distances), 2) or not len(pairs.distances):
            raise DatasetError(
                f"{split}: pairs of shape {pairs.nodes.shape} with {len(pairs.distances):,} distances; "
                "every distance needs two nodes, and there must be at least one pair"
            )
        if pairs.nodes.min() < 0 or pairs.nodes.max() >= self.num_nodes:
            raise DatasetError(f"{split}_pairs: all nodes must be from 0 to {self.num_nodes - 1}")
        if not (pairs.distances >= 0).all():
            raise DatasetError(f"{split}_distances: all values must be at least 0, or infinite")
        same = pairs.nodes[:, 0] == pairs.nodes[:, 1]
        if pairs.distances[same].any():
            raise DatasetError(f"{split}_distances: the distance from a node to itself must be 0")
