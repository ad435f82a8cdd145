"""Checkpoints: one safetensors file with one JSON text of metadata. Loading one runs no code and imports no module.

The metadata hold a hash of the tensors and one of themselves: a file that has changed since it was written is refused.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from torch import Tensor

from qrl.agents.errors import CheckpointError
from qrl.agents.learners.settings import Learns
from qrl.common.files import atomic_write, regular_file
from qrl.common.limits import MAX_ACTIONS, MAX_OBSERVATION_DIM
from qrl.common.settings import Settings
from qrl.common.text import clip, shown

FORMAT = "qrl-checkpoint"
VERSION = 2
_UNHASHED = 1  # the version of release 0.1, which is still read
_KEY = "qrl"  # one key only: safetensors keeps no order of several


class Checkpoint(Settings):
    """The metadata of a checkpoint: enough to rebuild the model and to resume training."""

    step: int = Field(ge=0, lt=2**63)
    model_name: str
    model_params: dict[str, Any]
    observation_dim: int = Field(ge=1, le=MAX_OBSERVATION_DIM)
    num_actions: int = Field(ge=1, le=MAX_ACTIONS)
    discount: float = Field(gt=0, lt=1)
    dataset_hash: str
    learns: Learns = "distances"
    settings: dict[str, Any]
    sampler: dict[str, Any]


def save_checkpoint(path: Path, checkpoint: Checkpoint, tensors: dict[str, Tensor]) -> None:
    # Cloned, because tied weights share memory, which the format does not support.
    plain = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    content = {"format": FORMAT, "format_version": VERSION, "tensors_hash": _hash(plain), **checkpoint.model_dump()}
    content["metadata_hash"] = _metadata_hash(content)
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
        raise CheckpointError(f"{path} cannot be read as a checkpoint: {clip(error)}") from error
    tensors_hash = content.pop("tensors_hash", None)
    if with_tensors:
        if tensors_hash is not None and tensors_hash != _hash(tensors):
            raise _damaged(path)
        name = not_finite(tensors)
        if name is not None:
            raise CheckpointError(f"{path}: {name} has values that are not finite numbers; use another checkpoint")
    return Checkpoint.from_values(content, str(path), CheckpointError), tensors


def not_finite(tensors: dict[str, Tensor]) -> str | None:
    """The name of a tensor with a value that is not finite, if there is one."""
    return next((name for name, tensor in tensors.items() if not tensor.isfinite().all()), None)


def _hash(tensors: dict[str, Tensor]) -> str:
    """Of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _metadata_hash(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path) -> CheckpointError:
    return CheckpointError(f"{path} has changed since it was written; restore it, or use another checkpoint")


def _read_metadata(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    try:
        content = json.loads(metadata[_KEY])
    except (KeyError, ValueError, RecursionError):
        raise CheckpointError(f"{path} is a safetensors file, but not a checkpoint of qrl") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path} is a safetensors file, but not a checkpoint of qrl")
    version = content.get("format_version")
    if version not in (_UNHASHED, VERSION):
        raise CheckpointError(
            f"{path} has format version {shown(version)}, but this release of qrl reads version {VERSION}; "
            "use the release that wrote it"
        )
    if version == VERSION and content.pop("metadata_hash", None) != _metadata_hash(content):
        raise _damaged(path)
    return {key: value for key, value in content.items() if key not in ("format", "format_version")}
