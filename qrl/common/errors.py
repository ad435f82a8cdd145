"""Errors that a user can fix: each names the file or key, what is wrong and what to do.

Each layer adds its own: `qrl.errors` (models), `qrl.envs.errors`, `qrl.agents.errors`.
"""

from qrl.common.text import clip

MAX_MESSAGE = 2000  # characters; whatever a file contains, its error stays readable


class UserError(ValueError):
    """Base of every error caused by input; commands print it without a traceback and exit with status 2."""

    def __init__(self, message: object) -> None:
        super().__init__(clip(message, MAX_MESSAGE))


class ConfigError(UserError):
    """A config file or a key=value override that cannot be used."""


class FileError(UserError):
    """A file or folder that cannot be read or written as asked."""


class RegistryError(UserError):
    """A model, learner, world or plugin that is unknown, unusable or already registered."""


class ContractError(UserError):
    """A Q-model, a learner or a world that breaks its contract."""
