"""Maps of a world: its cells, the walls and one-way doors of a layout, and one value per state."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from qrl.common.figures import save_figure
from qrl.envs.card import visits
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.layout import MOVES, Layout
from qrl.envs.world import World

_WALL = ListedColormap(["0.35"])


def draw_map(ax: Axes, world: World, values: NDArray[Any], **image: Any) -> AxesImage:
    """Draw one value per state (NaN: white) with walls and doors; `image` is passed to imshow.

    Of states that share a cell, the smallest value is shown.
    """
    x, y = world.cells.T
    shape = (y.max() + 1, x.max() + 1) if world.layout is None else world.layout.grid.shape
    grid = np.full(shape, np.inf)
    np.fmin.at(grid, (y, x), values)
    colors = ax.imshow(np.where(np.isinf(grid), np.nan, grid), **image)
    walls = np.ones(shape)
    walls[y, x] = np.nan
    ax.imshow(walls, cmap=_WALL)
    if world.layout is not None:
        _draw_doors(ax, world.layout)
    ax.set_xticks([])
    ax.set_yticks([])
    return colors


def _draw_doors(ax: Axes, layout: Layout) -> None:
    for door in layout.doors:
        x, y = layout.cells[door]
        dx, dy = MOVES[layout.headings[door]] * 0.4
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor="black", lw=1.2))
        arrow = {"arrowstyle": "-|>", "color": "black", "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
        # A white outline keeps the arrow readable on dark values.
        arrow["path_effects"] = [withStroke(linewidth=4, foreground="white")]
        ax.annotate("", xy=(x + dx, y + dy), xytext=(x - dx, y - dy), arrowprops=arrow)


def coverage_picture(dataset: Dataset, path: str | Path) -> None:
    """Draw two maps: number of steps taken in each state, and number of distinct actions taken there."""
    world = dataset.known_world
    if world is None or world.cells is None:
        raise DatasetError("coverage cannot be drawn: the dataset has no world that maps states to cells")
    counts = visits(dataset)
    steps, tried = counts.sum(1), (counts > 0).sum(1)
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    colors = draw_map(left, world, np.where(steps, steps, np.nan), norm=LogNorm(1, max(steps.max(), 10)))
    left.set_title("Steps taken in each state (white: none)")
    thousands = FuncFormatter(lambda value, _: f"{value:,.0f}")
    figure.colorbar(colors, ax=left, shrink=0.8, format=thousands, label="steps")
    actions = counts.shape[1]
    shades = {"cmap": colormaps["viridis"].resampled(actions), "vmin": 0.5, "vmax": actions + 0.5}
    colors = draw_map(right, world, np.where(tried, tried, np.nan), **shades)
    right.set_title("Distinct actions taken in each state (white: none)")
    figure.colorbar(colors, ax=right, shrink=0.8, ticks=range(1, actions + 1), label="actions")
    figure.suptitle(f"{world.name}: {dataset.num_episodes:,} episodes, {dataset.num_transitions:,} transitions")
    save_figure(figure, path)
