"""Dict observations of Minari datasets as rows of numbers, such as MiniGrid's image, direction and mission."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from qrl.envs.errors import DatasetError

MAX_TEXTS = 64  # different texts, such as missions, that are told apart


def encode_parts(space: spaces.Dict, episodes: Sequence[Any], dataset_id: str) -> tuple[NDArray[np.float32], str]:
    """(rows, dim) of all steps of all episodes, and what was done to each part."""
    columns, treatments = [], []
    for name, part in space.spaces.items():
        values = [value for episode in episodes for value in episode.observations[name]]
        if isinstance(part, spaces.Box):
            rows, treatment = np.stack(values).reshape(len(values), -1), "flattened"
        elif isinstance(part, spaces.Discrete):
            rows, treatment = np.eye(int(part.n))[np.array(values, np.int64) - int(part.start)], "as one-hot vector"
        elif isinstance(part, spaces.Text) or all(isinstance(value, str | bytes) for value in values):
            rows, treatment = _encode_texts(values, f"{dataset_id}: {name}")
        else:
            raise DatasetError(
                f"{dataset_id}: {name} is {part}; of a Dict, parts that are a Box, Discrete or texts are supported"
            )
        columns.append(rows.astype(np.float32))
        treatments.append(f"{name} {treatment}")
    return np.concatenate(columns, axis=1), ", ".join(treatments)


def _encode_texts(texts: list[Any], name: str) -> tuple[NDArray[Any], str]:
    known, ids = np.unique([str(text) for text in texts], return_inverse=True)
    if len(known) == 1:
        return np.empty((len(texts), 0)), "left out (always the same)"
    if len(known) > MAX_TEXTS:
        raise DatasetError(f"{name} has {len(known):,} different texts; at most {MAX_TEXTS} are told apart")
    return np.eye(len(known))[ids.ravel()], f"as one of {len(known)} texts"
