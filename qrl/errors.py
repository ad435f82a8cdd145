"""Errors of models and of the registry."""

from qrl.common.errors import UserError


class ShapeError(UserError):
    """Tensors, or sizes of a model, that do not fit together."""


class RegistryError(UserError):
    """An unknown, doubly registered or unusable model or plugin."""


class ContractError(UserError):
    """A Q-model that breaks its contract."""
