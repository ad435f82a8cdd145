"""Errors of training runs."""

from qrl.common.errors import UserError


class CheckpointError(UserError):
    """A checkpoint that is damaged, foreign, newer, or does not fit."""


class RunError(UserError):
    """A folder that is not a training run, or one that cannot be used as asked."""


class TrainingError(UserError):
    """Training that cannot continue."""


class LearnerError(UserError):
    """A learner that cannot train the model or use the data that it is given."""
