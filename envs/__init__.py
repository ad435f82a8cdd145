"""Worlds and their data. Importing this package registers the environment with Gymnasium and does nothing else."""

import gymnasium

gymnasium.register(id="qrl/OneWayDoors-v0", entry_point="qrl.envs.one_way_doors:OneWayDoorsEnv")
