"""Worlds and datasets. Importing this package registers the environment with Gymnasium."""

import gymnasium

gymnasium.register(id="qrl/OneWayDoors-v0", entry_point="qrl.envs.one_way_doors:OneWayDoorsEnv")
