"""Errors of models."""

from qrl.common.errors import UserError


class ShapeError(UserError):
    """Tensor shapes or model sizes that do not match."""


class ContractError(UserError):
    """A Q-model or a learner that breaks its contract."""
