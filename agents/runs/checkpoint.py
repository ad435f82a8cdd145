"""Checkpoints: one safetensors file with one JSON text of metadata. Loading one runs no code and imports no module."""

import json
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from qrl.agents.errors import CheckpointError
from qrl.agents.learners.settings import Learns
from qrl.common.files import atomic_write, regular_file
from qrl.common.settings import Settings
from qrl.common.text import shown

FORMAT = "qrl-checkpoint"
VERSION = 1
_KEY = "qrl"  # one key only: safetensors keeps no order of several


class Checkpoint(Settings):
    """The metadata of a checkpoint: enough to rebuild the model and to resume training."""

    step: int
    model_name: str
    model_params: dict[str, Any]
    observation_dim: int
    num_actions: int
    discount: float
    dataset_hash: str
    learns: Learns = "distances"
    settings: dict[str, Any]
    sampler: dict[str, Any]


def save_checkpoint(path: Path, checkpoint: Checkpoint, tensors: dict[str, Tensor]) -> None:
    content = {"format": FORMAT, "format_version": VERSION, **checkpoint.model_dump()}
    # Cloned, because tied weights share memory, which the format does not support.
    plain = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    data = safetensors.torch.save(plain, {_KEY: json.dumps(content, sort_keys=True)})
    with atomic_write(path) as file:
        file.write(data)


def load_checkpoint(path: Path, with_tensors: bool = True) -> tuple[Checkpoint, dict[str, Tensor]]:
    regular_file(path, CheckpointError)
    try:
        with safe_open(path, framework="pt") as file:
            content = _read_metadata(path, file.metadata() or {})
            keys = list(file.keys()) if with_tensors else []
            tensors = {key: file.get_tensor(key) for key in keys}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} cannot be read as a checkpoint: {error}") from error
    return Checkpoint.from_values(content, str(path), CheckpointError), tensors


def _read_metadata(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    try:
        content = json.loads(metadata[_KEY])
    except (KeyError, ValueError, RecursionError):
        raise CheckpointError(f"{path} is a safetensors file, but not a checkpoint of qrl") from None
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise CheckpointError(f"{path} is a safetensors file, but not a checkpoint of qrl")
    version = content.pop("format_version", None)
    if version != VERSION:
        raise CheckpointError(
            f"{path} has format version {shown(version)}, but this release of qrl reads version {VERSION}; "
            "use the release that wrote it"
        )
    return content
