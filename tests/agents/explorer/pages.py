"""Pages of worlds whose distances are made up, and runs to explore."""

from pathlib import Path
from typing import Any

import numpy as np

from qrl.agents.explorer.page import planner_data, stored_goals, write_page
from qrl.agents.explorer.snapshots import Snapshot, exact_snapshot
from qrl.agents.explorer.world import ExplorerWorld
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.layout import Layout, load_layout
from qrl.envs.world import World


def world_of(layout: Layout) -> ExplorerWorld:
    rows = layout.observations[[0, 0]]
    return ExplorerWorld.of(Dataset.from_arrays(rows, [0], [1], num_actions=4, layout=layout))


def hall(side: int) -> Layout:
    """One large room with a start in its corner."""
    row = "#" + "G" * side + "#"
    wall = "#" * (side + 2)
    return Layout("\n".join([wall, "#S" + row[2:], *[row] * (side - 1), wall]), "hall")


def circle(**changes: Any) -> ExplorerWorld:
    """Eight cells around a ninth, without a layout: one action leads clockwise, another stays."""
    cells = [[0, 0], [1, 0], [2, 0], [2, 1], [2, 2], [1, 2], [0, 2], [0, 1]]
    states = np.arange(len(cells))
    values = {"starts": [0], "goals": [5], "cells": cells, **changes}
    world = World("circle", cells, np.stack([(states + 1) % len(cells), states], 1), **values)
    return ExplorerWorld(world.name, world.observations, ("on", "stay"), (0, 5), GroundTruth(world))


def noisy_page(path: Path, layout: Layout | str | ExplorerWorld, runs: int = 2) -> None:
    """A page of planners whose steps are the exact ones with noise."""
    world = layout if isinstance(layout, ExplorerWorld) else world_of(load_layout(layout))
    goals = stored_goals(world)
    exact = exact_snapshot(world, goals, seed=0)
    assert exact is not None
    assert exact.steps is not None
    planners = [planner_data("ground truth", "", [exact], exact=True)]
    for run in range(runs):
        steps = exact.steps + np.random.default_rng(run).normal(size=exact.steps.shape).astype(np.float32)
        planners.append(planner_data(f"run {run}", "", [Snapshot(1, steps, steps.argmin(-1))]))
    write_page(path, world, goals, planners, [])
