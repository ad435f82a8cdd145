"""Errors in worlds and datasets."""

from qrl.common.errors import UserError


class LayoutError(UserError):
    """A layout that cannot be found or does not describe a valid world."""


class DatasetError(UserError):
    """A dataset that is damaged, inconsistent or in the wrong format."""


class WorldError(UserError):
    """An environment or task that does not support planning."""
