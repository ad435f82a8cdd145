"""Pictures of data without a world: learned distances against hindsight, and the lengths of trajectories."""

from pathlib import Path

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from qrl.agents.evaluation.hindsight import Hindsight
from qrl.common.figures import clipping, save_figure, tidy

_BINS = 40
_LEARNED, _HELD_OUT = "#d95f02", "#7570b3"


def hindsight_picture(hindsight: Hindsight, name: str, path: str | Path) -> None:
    """Learned distance against the steps that a held-out trajectory took from x_i to x_j."""
    steps, longest = hindsight.steps, int(hindsight.steps.max())
    highest = 1.25 * longest
    distance = np.clip(hindsight.distance, 0, highest)  # beyond the picture: drawn on its edge
    note = clipping(hindsight.distance, 0, highest, "pairs").note
    figure = Figure(figsize=(7.6, 5.2), layout="constrained")
    ax = figure.subplots()
    edges = np.unique(np.linspace(1, longest + 1, _BINS + 1).astype(int)) - 0.5
    top = max(1.0, 1.15 * float(distance.max()))
    rows = np.linspace(0, top, 2 * _BINS)
    *_, image = ax.hist2d(steps, distance, bins=(edges, rows), norm=LogNorm(), cmap="Blues")
    figure.colorbar(image, ax=ax, label="pairs")
    column = np.digitize(steps, edges)
    columns = np.unique(column)
    low, middle, high = np.transpose([np.quantile(distance[column == one], (0.1, 0.5, 0.9)) for one in columns])
    centers = [steps[column == one].mean() for one in columns]
    ax.plot(centers, middle, color=_LEARNED, lw=2, label="median")
    ax.plot(centers, low, color=_LEARNED, lw=1, ls=":", label="10 % and 90 %")
    ax.plot(centers, high, color=_LEARNED, lw=1, ls=":")
    ax.plot([0, longest], [0, longest], color="black", lw=1, label="as many steps as taken")
    ax.set_ylim(0, top)
    ax.set_xlabel("steps that the trajectory took, j - i")
    ax.set_ylabel("learned distance d(x_i, x_j)")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    title = f"{name}: {hindsight.consistent.mean():.1%} of pairs are on or below the line"
    ax.set_title(f"{title}\n{note}" if note else title)
    tidy(ax)
    save_figure(figure, path)


def lengths_picture(lengths: NDArray[np.int64], held_out: NDArray[np.int64], path: str | Path) -> None:
    """How long trajectories are: all of the data, and those held out."""
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    ax = figure.subplots()
    edges = np.unique(np.linspace(lengths.min(), lengths.max() + 1, _BINS + 1).astype(int)) - 0.5
    for part, color, label in ((lengths, "0.75", "all"), (held_out, _HELD_OUT, "held out")):
        ax.hist(part, edges.tolist(), color=color, label=f"{label}: {len(part):,}, median {np.median(part):g} steps")
    ax.set_xlabel("steps of a trajectory")
    ax.set_ylabel("trajectories")
    ax.legend()
    tidy(ax)
    save_figure(figure, path)
