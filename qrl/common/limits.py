"""Bounds on the spaces of a world, which files declare and memory is allocated by."""

MAX_OBSERVATION_DIM = 2**24
MAX_ACTIONS = 2**16
