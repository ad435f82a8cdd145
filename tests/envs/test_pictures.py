import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from qrl.envs import pictures
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.layout import Layout
from qrl.envs.pictures import coverage_picture, draw_map

# States 0 to 3: start, a door to the right, floor, goal.
ROW = Layout("######\n#S>.G#\n######", "row")
NAN = np.nan


def values(image: AxesImage) -> NDArray[np.float64]:
    array = image.get_array()
    assert array is not None
    return np.ma.filled(array, NAN)


def test_map_by_hand() -> None:
    ax = Figure().subplots()
    colors = draw_map(ax, ROW.world, np.array([5, 6, NAN, 8]))
    expected = [[NAN] * 6, [NAN, 5, 6, NAN, 8, NAN], [NAN] * 6]
    np.testing.assert_array_equal(values(colors), expected)
    _, walls = ax.images
    np.testing.assert_array_equal(~np.isnan(values(walls)), ROW.grid == "#")
    (frame,) = ax.patches
    assert isinstance(frame, Rectangle)
    assert frame.get_xy() == (1.5, 0.5)
    (arrow,) = ax.texts
    assert arrow.get_position() == pytest.approx((1.6, 1))  # the tail, left of the middle of cell (2, 1)


def test_coverage_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    up, right = 0, 1
    dataset = Dataset.from_arrays(
        ROW.observations[[0, 0, 0, 1, 2]], [up, up, right, right], [4], num_actions=4, layout=ROW
    )
    figures: list[Figure] = []
    monkeypatch.setattr(pictures, "save_figure", lambda figure, path: figures.append(figure))
    coverage_picture(dataset, "unused.png")
    steps, actions = (values(ax.images[0])[1, 1:5] for ax in figures[0].axes[:2])
    np.testing.assert_array_equal(steps, [3, 1, NAN, NAN])
    np.testing.assert_array_equal(actions, [2, 1, NAN, NAN])


def test_coverage_needs_a_layout() -> None:
    dataset = Dataset.from_arrays(np.eye(3), [0, 1], [2], num_actions=2)
    with pytest.raises(DatasetError, match="has no world"):
        coverage_picture(dataset, "never.png")
