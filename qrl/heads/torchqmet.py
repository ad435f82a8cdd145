"""Weights of torchqmet, the reference implementation of IQE, MRN, PQE, Deep Norm and Wide Norm."""

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from qrl.common.errors import UserError
from qrl.common.text import shown
from qrl.errors import ShapeError
from qrl.heads.base import Head
from qrl.heads.deep_linear import DistanceMixture
from qrl.heads.iqe import IQE
from qrl.heads.mrn import MRN
from qrl.heads.norms import DeepNorm, WideNorm, project_
from qrl.heads.pqe import MAX_RAW_VARIANCE, PQEGG, PQELH

_HEADS: tuple[type[Head], ...] = (IQE, MRN, DeepNorm, WideNorm, PQELH, PQEGG)
# Prefixes of our names and of torchqmet's; `_their_name` translates the rest of a name.
_PREFIXES = {
    "symmetric.": "sym_proj.",
    "asymmetric.": "asym_proj.",
    "from_input.0.": "u0.",
    "from_input.": "us_after_first.",
    "from_layer.": "ws_after_first.",
    "weights.": "w.",
    "transform.raw_slopes": "transforms.0.raw_ms",
    "transform.raw_offsets": "transforms.0.raw_bs_after_first",
    "raw_variance": "measure.log_sigma2",
    "scale.net.": "measure.scales_net.",
}
_CONSTANT = "transforms.0.bs_first_constant"  # a buffer of zeros


def load_torchqmet(head: Head, state_dict: Mapping[str, Any], prefix: str = "") -> None:
    """Load the state dict of a torchqmet module into `head`, which then returns the same distances.

    `head` is built with the sizes of that module; docs/heads-alone.md lists the arguments that correspond to its. A key
    that is missing, unknown or of another shape raises an error that names it, and `head` is left unchanged. With
    `prefix`, only keys that begin with it are read: the module as part of a larger model.
    """
    if not isinstance(head, _HEADS):
        names = ", ".join(cls.__name__ for cls in _HEADS)
        raise UserError(
            f"load_torchqmet: {type(head).__name__} has no counterpart in torchqmet; those that do: {names}"
        )
    theirs = {key.removeprefix(prefix): value for key, value in state_dict.items() if key.startswith(prefix)}
    converted = {}
    for name, ours in head.state_dict().items():
        key, shape = _their_name(head, name), _their_shape(head, name, ours)
        converted[name] = _checked(theirs.pop(key, None), prefix + key, shape, head).reshape(ours.shape)
    constant = theirs.pop(_CONSTANT, None)
    if constant is not None and (not isinstance(constant, Tensor) or constant.any()):
        raise UserError(f"state dict: {prefix}{_CONSTANT} must be zero, as in torchqmet")
    if theirs:
        key = prefix + min(theirs)
        raise UserError(
            f"state dict: {shown(key)} has no counterpart in {_shown(head)}; build the head with other arguments"
        )
    head.load_state_dict(converted)
    project_(head)  # torchqmet projects before the next forward pass, so that saved weights may be negative


def _shown(head: Head) -> str:
    return f"{type(head).__name__}({head.extra_repr()})"


def _their_name(head: Head, name: str) -> str:
    if name.startswith("reduction.net."):
        net = "alpha_net" if isinstance(head.reduction, DistanceMixture) else "beta_net"
        name = name.replace("net", net, 1)
    for ours, theirs in _PREFIXES.items():
        if name.startswith(ours):
            name = theirs + name.removeprefix(ours)
            break
    name = re.sub(r"^(us_after_first)\.(\d+)", lambda match: f"{match[1]}.{int(match[2]) - 1}", name)
    # The factors of a product, ours from right to left.
    return re.sub(r"factors\.(\d+)", lambda match: f"mats.{3 - int(match[1])}", name)


def _their_shape(head: Head, name: str, ours: Tensor) -> tuple[int, ...]:
    if name == "raw_variance":
        assert isinstance(head, PQEGG)
        return (head.num_components, head.dim_per_component)
    return (len(ours) // 2, 2) if name.endswith(".raw_weights") else tuple(ours.shape)


def _checked(value: Any, key: str, shape: tuple[int, ...], head: Head) -> Tensor:
    if value is None:
        raise UserError(
            f"state dict: {key} is missing, which {_shown(head)} needs; build the head with other arguments"
        )
    if not isinstance(value, Tensor) or not value.is_floating_point():
        raise UserError(f"state dict: {key} is not a tensor of floating-point numbers")
    if tuple(value.shape) != shape:
        raise ShapeError(
            f"state dict: {key} has the shape {tuple(value.shape)}, but {_shown(head)} needs {shape}; "
            "build the head with the sizes of the torchqmet module"
        )
    if key.endswith("log_sigma2") and value.abs().max() > MAX_RAW_VARIANCE:
        raise UserError(f"state dict: {key} exceeds {MAX_RAW_VARIANCE} in magnitude, where PQEGG clamps it")
    return value
