"""Errors of models."""

from qrl.common.errors import ContractError as ContractError
from qrl.common.errors import UserError


class ShapeError(UserError):
    """Tensor shapes or model sizes that do not match."""
