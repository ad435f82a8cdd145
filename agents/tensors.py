"""Names of tensors in a checkpoint: `model.encoder.weight` is `encoder.weight` of the part `model`."""

from torch import Tensor


def with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors of one part, without its prefix."""
    return {key.removeprefix(f"{prefix}."): value for key, value in tensors.items() if key.startswith(f"{prefix}.")}
