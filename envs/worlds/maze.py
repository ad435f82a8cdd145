"""Generated mazes with one-way doors."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from qrl.envs.ground_truth import GroundTruth
from qrl.envs.layout import DOOR_SLOTS, DOORS, Layout
from qrl.envs.world import World
from qrl.envs.worlds.registry import WorldSettings, register_world
from qrl.envs.worlds.slip import DISCOUNT, SLIP, with_slip

_TRIES = 20  # places tried per door


class MazeSettings(WorldSettings):
    size: int = Field(21, ge=5, le=199, description="width and height with the border; even ones are rounded up")
    doors: int = Field(10, ge=0, le=DOOR_SLOTS, description="one-way doors, placed so that all states reach each other")
    loops: float = Field(0.1, ge=0, le=1, description="fraction of the remaining inner walls that are opened")
    tasks: float = Field(0.25, gt=0, le=0.5, description="fraction of the rooms that are starts, and that are goals")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of the maze")
    slip: float = SLIP
    discount: float = DISCOUNT


@register_world("maze", MazeSettings)
def maze(settings: MazeSettings) -> World:
    """A generated maze with one-way doors, in which all states reach each other.

    Rooms of one cell lie on a lattice. A depth-first search joins them into a tree, opened walls add loops, and doors
    stand between rooms where a detour exists. Without loops there is none, and no door.
    """
    rng = np.random.default_rng(settings.seed)
    side = settings.size // 2
    grid = _open_walls(_tree(side, rng), settings.loops, rng)
    rooms = rng.permutation(np.argwhere(np.ones((side, side), bool)) * 2 + 1)
    count = max(1, int(len(rooms) * settings.tasks))
    for mark, chosen in (("S", rooms[:count]), ("G", rooms[count : 2 * count])):
        grid[chosen[:, 0], chosen[:, 1]] = mark
    layout = _with_doors(grid, settings.doors, rng)
    return with_slip(replace(layout.world, discount=settings.discount), settings.slip)


def _tree(side: int, rng: np.random.Generator) -> NDArray[np.str_]:
    """A maze without loops: random depth-first search over the rooms."""
    grid = np.full((2 * side + 1, 2 * side + 1), "#")
    stack = [(0, 0)]
    grid[1, 1] = "."
    while stack:
        row, column = stack[-1]
        around = [(row + dy, column + dx) for dy, dx in ((-1, 0), (0, 1), (1, 0), (0, -1))]
        closed = [(y, x) for y, x in around if 0 <= y < side and 0 <= x < side and grid[2 * y + 1, 2 * x + 1] == "#"]
        if not closed:
            stack.pop()
            continue
        y, x = closed[rng.integers(len(closed))]
        grid[2 * y + 1, 2 * x + 1] = grid[row + y + 1, column + x + 1] = "."
        stack.append((y, x))
    return grid


def _between_rooms(grid: NDArray[np.str_], mark: str) -> NDArray[np.int64]:
    """(n, 2): the cells between two rooms that are marked so."""
    row, column = np.indices(grid.shape)
    inside = (row % (len(grid) - 1) != 0) & (column % (len(grid) - 1) != 0)
    return np.argwhere((grid == mark) & inside & ((row + column) % 2 == 1))


def _open_walls(grid: NDArray[np.str_], fraction: float, rng: np.random.Generator) -> NDArray[np.str_]:
    walls = _between_rooms(grid, "#")
    opened = rng.permutation(walls)[: round(len(walls) * fraction)]
    grid[opened[:, 0], opened[:, 1]] = "."
    return grid


def _with_doors(grid: NDArray[np.str_], doors: int, rng: np.random.Generator) -> Layout:
    """The layout with as many doors as can be placed; one that would cut something off is tried elsewhere."""
    layout = _layout(grid)
    placed = 0
    for row, column in rng.permutation(_between_rooms(grid, "."))[: doors * _TRIES]:
        if placed == doors:
            break
        horizontal = row % 2 == 1
        grid[row, column] = DOORS[2 * rng.integers(2) + horizontal]  # ^ and v, or > and <
        tried = _layout(grid)
        if GroundTruth(tried).strongly_connected:
            layout, placed = tried, placed + 1
        else:
            grid[row, column] = "."
    return layout


def _layout(grid: NDArray[np.str_]) -> Layout:
    return Layout("\n".join("".join(row) for row in grid), f"maze-{len(grid)}")
