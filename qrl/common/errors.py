"""Errors that a user can mend: each says which file or key, what is wrong and what to do."""


class UserError(ValueError):
    """Base of every error caused by input; commands print it without a traceback and exit with status 2."""


class ConfigError(UserError):
    """A config file or a key=value override that cannot be used."""


class FileError(UserError):
    """A file or folder that cannot be read or written as asked."""


class LayoutError(UserError):
    """A layout that does not describe a usable world."""


class DatasetError(UserError):
    """A dataset that is damaged, foreign or inconsistent."""


class CheckpointError(UserError):
    """A checkpoint that is damaged, foreign, newer, or does not fit."""


class RunError(UserError):
    """A folder that is no training run, or one that cannot be used as asked."""


class TrainingError(UserError):
    """Training that cannot go on."""


class ShapeError(UserError):
    """Tensors, or sizes of a model, that do not fit together."""


class RegistryError(UserError):
    """An unknown, doubly registered or unusable model or plugin."""


class ContractError(UserError):
    """A Q-model that does not do what the contract says."""


class WorldError(UserError):
    """An environment, or a task in it, that cannot be planned in."""
