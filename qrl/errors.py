"""Errors of models and the registry."""

from qrl.common.errors import UserError


class ShapeError(UserError):
    """Tensor shapes or model sizes that do not match."""


class RegistryError(UserError):
    """A model or plugin that is unknown, unusable or already registered."""


class ContractError(UserError):
    """A Q-model that breaks its contract."""
