"""Errors of worlds and data."""

from qrl.common.errors import UserError


class LayoutError(UserError):
    """A layout that does not describe a usable world."""


class DatasetError(UserError):
    """A dataset that is damaged, foreign or inconsistent."""


class WorldError(UserError):
    """An environment, or a task in it, that cannot be planned in."""
