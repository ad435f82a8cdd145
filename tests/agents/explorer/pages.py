"""Pages of worlds whose distances are made up, and runs to explore."""

from pathlib import Path

import numpy as np

from qrl.agents.explorer.page import planner_data, stored_goals, write_page
from qrl.agents.explorer.snapshots import Snapshot, exact_snapshot
from qrl.agents.explorer.world import ExplorerWorld
from qrl.envs.dataset import Dataset
from qrl.envs.layout import Layout, load_layout


def world_of(layout: Layout) -> ExplorerWorld:
    rows = layout.observations[[0, 0]]
    return ExplorerWorld.of(Dataset.from_arrays(rows, [0], [1], num_actions=4, layout=layout))


def hall(side: int) -> Layout:
    """One large room with a start in its corner."""
    row = "#" + "G" * side + "#"
    wall = "#" * (side + 2)
    return Layout("\n".join([wall, "#S" + row[2:], *[row] * (side - 1), wall]), "hall")


def noisy_page(path: Path, layout: Layout | str, runs: int = 2) -> None:
    """A page of planners whose steps are the exact ones with noise."""
    world = world_of(load_layout(layout))
    goals = stored_goals(world)
    exact = exact_snapshot(world, goals, seed=0)
    assert exact is not None
    assert exact.steps is not None
    planners = [planner_data("ground truth", "", [exact], exact=True)]
    for run in range(runs):
        steps = exact.steps + np.random.default_rng(run).normal(size=exact.steps.shape).astype(np.float32)
        planners.append(planner_data(f"run {run}", "", [Snapshot(1, steps, steps.argmin(-1))]))
    write_page(path, world, goals, planners, [])
