"""Plot the distance matrix of a random graph."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from qrl.common.figures import save_figure
from qrl.envs.graphs.collector import GraphSettings, all_distances, make_random_graph


def distances_picture(settings: GraphSettings, path: str | Path) -> None:
    distances = all_distances(make_random_graph(settings))
    finite = np.isfinite(distances)
    figure = Figure(figsize=(6.6, 5.4), layout="constrained")
    ax = figure.subplots()
    ax.set_facecolor("0.85")
    image = ax.imshow(np.where(finite, distances, np.nan), cmap="viridis", interpolation="nearest")
    figure.colorbar(image, ax=ax, label="distance" + ("" if finite.all() else " (grey: unreachable)"))
    ax.set_xlabel("to node")
    ax.set_ylabel("from node")
    ax.set_title(f"{settings.kind}, {settings.nodes} nodes: {1 - finite.mean():.0%} of pairs unreachable")
    save_figure(figure, path)
