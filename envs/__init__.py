"""Worlds and their data. Importing this package registers the environment with Gymnasium and does nothing else."""

from qrl.envs.registration import register_when_imported

register_when_imported()
