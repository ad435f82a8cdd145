"""The explorer as one HTML file: the world, the tables of every planner, and the JavaScript that shows them."""

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.explorer.snapshots import Snapshot, exact_snapshot, kept_checkpoints, run_snapshots, spread
from qrl.agents.explorer.tables import BEYOND, INFINITE, pack
from qrl.agents.explorer.world import ExplorerWorld
from qrl.agents.pages import render
from qrl.agents.planning.planner import MAX_STEPS, Ids
from qrl.common.errors import ConfigError
from qrl.common.files import atomic_write

MAX_STATES = 2_500
TABLE_VALUES = 2**20  # (state, goal, action) per table: larger worlds get fewer goals
# A module imports earlier ones only.
MODULES = ("data", "walk", "colors", "symbols", "map", "details", "view", "panel", "player", "table", "main")
_COLORS = 64  # samples of each colour map


def write_explorer(
    path: str | Path, agents: Sequence[TrainedAgent], checkpoints: bool = False, seed: int = 0
) -> list[str]:
    """Write the page of runs in one world, and return what its reader should know.

    checkpoints: also those that the runs kept. seed: of ties between actions, as the agents were opened with.
    """
    world = common_world(agents)
    goals = stored_goals(world)
    exact = exact_snapshot(world, goals, seed)
    planners = [] if exact is None else [planner_data("ground truth", "exact shortest paths", [exact], exact=True)]
    notices = [*_world_notices(world, goals), *(notice for trained in agents for notice in trained.notices)]
    for trained in agents:
        if checkpoints and not kept_checkpoints(trained):
            notices.append(f"{trained.run.path} kept no checkpoints but its last; train with checkpoint_keep=1")
        described = f"{trained.checkpoint.model_name}, trained by {trained.run.settings.learner.name}"
        planners.append(planner_data(trained.name, described, list(run_snapshots(trained, world, goals, checkpoints))))
    write_page(path, world, goals, planners, notices)
    return notices


def write_page(
    path: str | Path, world: ExplorerWorld, goals: Ids, planners: Sequence[dict[str, Any]], notices: Sequence[str]
) -> None:
    data = page_data(world, goals, planners)
    tables = [snapshot["steps"] for planner in planners for snapshot in planner["snapshots"] if snapshot["steps"]]
    error = max((table["error"] for table in tables), default=0.0)
    title = f"What the models have learned: {world.name}"
    page = render("explorer.html", title=title, data=data, script=script(), notices=notices, error=error)
    with atomic_write(path) as file:
        file.write(page.encode())


def common_world(agents: Sequence[TrainedAgent]) -> ExplorerWorld:
    """The world of all runs; refuses runs of different worlds, and a world too large for a page."""
    first, *others = agents
    known = first.dataset.world
    count = len(first.dataset.observations) if known is None else known.num_states
    if count > MAX_STATES:
        raise ConfigError(
            f"{first.run.path}: its world has {count:,} states, but a page holds at most {MAX_STATES:,}; "
            "compare-agents reports on worlds of any size"
        )
    world = ExplorerWorld.of(first.dataset)
    for trained in others:
        data = trained.dataset
        if data.content_hash == first.dataset.content_hash:
            continue
        if len(data.observations) != count or not world.same_as(ExplorerWorld.of(data)):
            raise ConfigError(
                f"{trained.run.path} was trained in another world than {first.run.path}; a page shows one world: "
                "make one page per world"
            )
    return world


def stored_goals(world: ExplorerWorld) -> Ids:
    """All states, or in a large world as many as fit: the first shown, then goals of tasks, then others."""
    count = len(world.observations)
    limit = TABLE_VALUES // (count * len(world.actions))
    if count <= limit:
        return np.arange(count)
    first = world.task[1]
    tasks = world.goals[world.goals != first]
    others = np.setdiff1d(np.arange(count), [*tasks, first])
    chosen = tasks[spread(len(tasks), limit - 1)]
    return np.sort([first, *chosen, *others[spread(len(others), limit - 1 - len(chosen))]])


def _world_notices(world: ExplorerWorld, goals: Ids) -> list[str]:
    notices = []
    if world.map_missing is not None:
        notices.append(world.map_missing)
    if len(goals) < len(world.observations):
        notices.append(
            f"{len(goals):,} of the {len(world.observations):,} states can be goals, marked by dots: all would not fit "
            "into a page"
        )
    return notices


def planner_data(name: str, description: str, snapshots: Sequence[Snapshot], exact: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "exact": exact,
        "snapshots": [snapshot.as_dict() for snapshot in snapshots],
    }


def page_data(world: ExplorerWorld, goals: Ids, planners: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Everything that the JavaScript reads."""
    from matplotlib import colormaps

    transitions = world.transitions
    return {
        "world": {
            "name": world.name,
            "states": len(world.observations),
            "actions": world.actions,
            "transitions": None if transitions is None else pack(transitions.astype(np.uint16)),
            "drawing": world.drawing(),
            "observations": None if world.drawing() else np.round(world.observations.astype(np.float64), 3).tolist(),
        },
        "task": world.task,
        "goals": goals.tolist(),
        "planners": planners,
        "maxSteps": MAX_STEPS,
        "codes": {"infinite": INFINITE, "beyond": BEYOND},
        "colors": {
            kind: [[round(255 * part) for part in color[:3]] for color in colormaps[name](np.linspace(0, 1, _COLORS))]
            for kind, name in (("sequential", "viridis"), ("diverging", "RdBu_r"))
        },
    }


def script() -> str:
    """The JavaScript modules as one: without their imports and exports, in an order in which each finds the others."""
    folder = resources.files("qrl.agents.explorer")
    parts = [folder.joinpath(f"{name}.js").read_text("utf-8") for name in MODULES]
    return re.sub(r"^(import\b[^;]*;\n|export )", "", "\n".join(parts), flags=re.MULTILINE)
