"""Import from and export to OGBench's file layout: an .npz of observations, actions and terminals, and a -val.npz.

A trajectory of T actions has T + 1 rows; the action of its last row means nothing, and its terminal is 1. Goals, and
whether an episode ended by itself or at a time limit, have no place in this layout.
"""

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrl.common.files import atomic_write, regular_file
from qrl.common.text import clip
from qrl.envs import npy
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.npz import ZIP_ERRORS

MAX_BYTES = 2**32  # of an array; compressed files say how large they become
_VALIDATION = 10  # episodes to learn from for each one to validate


def validation_path(path: str | Path) -> Path:
    path = Path(path)
    return path.with_name(f"{path.stem}-val{path.suffix}")


def to_ogbench(dataset: Dataset, path: str | Path) -> list[Path]:
    """Write the episodes to `path`, and the last of them, one for ten others, to the file for validation.

    With too few episodes for validation, that file of an earlier export is deleted, which would seem to belong to this.
    """
    split = dataset.num_episodes - dataset.num_episodes // (_VALIDATION + 1)
    paths = []
    for file, first, end in ((Path(path), 0, split), (validation_path(path), split, dataset.num_episodes)):
        if first < end:
            _write(dataset, first, end, file)
            paths.append(file)
        else:
            file.unlink(missing_ok=True)
    return paths


def _write(dataset: Dataset, first: int, end: int, path: Path) -> None:
    rows = slice(int(dataset.starts[first]), int(dataset.ends[end - 1]) + 1)
    states = dataset.states[rows]
    actions, terminals = np.zeros(len(states), np.int64), np.zeros(len(states), bool)
    taken = slice(int(dataset.offsets[first]), int(dataset.offsets[end]))
    actions[dataset.sources[taken] - rows.start] = dataset.actions[taken]
    terminals[dataset.ends[first:end] - rows.start] = True
    with atomic_write(path) as file:
        np.savez_compressed(
            file,
            allow_pickle=False,
            observations=dataset.observations[states],
            actions=actions,
            terminals=terminals,
        )


def from_ogbench(path: str | Path, num_actions: int) -> Dataset:
    """Import a file with discrete actions, of which there are `num_actions`; images are flattened."""
    path = regular_file(path, DatasetError)
    try:
        with zipfile.ZipFile(path) as archive:
            observations, actions, terminals = (
                _read(path, archive, name) for name in ("observations", "actions", "terminals")
            )
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error
    except ZIP_ERRORS as error:
        raise DatasetError(f"{path} is damaged or not an .npz file ({clip(error)})") from error
    if not np.issubdtype(actions.dtype, np.integer) or actions.ndim != 1:
        raise DatasetError(
            f"{path}: its actions are {actions.ndim}-dimensional {actions.dtype}, that is, continuous; qrl learns from "
            "discrete actions only, a number from 0 on for each step"
        )
    ends = np.flatnonzero(terminals)
    same = len(observations) == len(actions) == len(terminals) == terminals.size
    if not same or not len(ends) or ends[-1] != len(actions) - 1:
        raise DatasetError(
            f"{path}: observations, actions and terminals need one row per step, and the last terminal must be 1"
        )
    lengths = np.diff(ends, prepend=-1) - 1
    if lengths.min() < 1:
        raise DatasetError(f"{path}: trajectory {int(lengths.argmin())} has a single row, and so no action")
    taken = np.ones(len(actions), bool)
    taken[ends] = False
    return Dataset.from_arrays(
        observations.reshape(len(observations), -1),
        actions[taken],
        lengths,
        num_actions=num_actions,
        source=f"the file {path.name} in OGBench's layout",
    )


def _read(path: Path, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """An array of numbers, whose size is checked before memory is allocated."""
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise DatasetError(f"{path}: the array {name!r} is missing; OGBench's files have it") from None
    if info.file_size > MAX_BYTES:
        raise DatasetError(f"{path}: the array {name!r} has {info.file_size:,} bytes, more than {MAX_BYTES:,}")
    with archive.open(info) as file:
        try:
            shape, fortran_order, dtype = npy.read_header(file)
        except ValueError as error:
            raise DatasetError(f"{path}: the array {name!r} is not in NumPy's format ({clip(error)})") from error
        size = math.prod(shape) * dtype.itemsize
        content = file.read()
    if size != len(content) or not shape or fortran_order:
        raise DatasetError(f"{path}: the array {name!r} is damaged, or not in C order")
    return np.frombuffer(content, dtype).reshape(shape)
