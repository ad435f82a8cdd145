import numpy as np
import pytest
from matplotlib.figure import Figure

from qrl.envs.graphs import pictures
from qrl.envs.graphs.collector import GraphSettings, all_distances, make_random_graph
from qrl.envs.graphs.pictures import distances_picture


def test_the_distance_matrix_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(pictures, "save_figure", lambda figure, path: figures.append(figure))
    settings = GraphSettings(kind="random-sparse", nodes=20)
    distances_picture(settings, "unused.png")
    distances = all_distances(make_random_graph(settings))
    ax = figures[0].axes[0]
    array = ax.images[0].get_array()
    assert array is not None
    np.testing.assert_array_equal(np.ma.masked_invalid(array).filled(np.inf), distances)
    assert ax.get_title() == f"random-sparse, 20 nodes: {np.isinf(distances).mean():.0%} of pairs unreachable"
