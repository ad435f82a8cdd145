"""Saving figures, labels at the ends of lines, and what clips."""

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from qrl.common.figures import (
    clipping,
    end_labels,
    figure_files,
    grid_shape,
    label_end,
    panel_grid,
    plain_log_axis,
    save_figure,
    spread,
    spread_labels,
)


def drawn() -> Figure:
    figure = Figure(figsize=(2, 1), layout="constrained")
    ax = figure.subplots()
    ax.plot([1, 2], [3, 4], "o-")
    ax.imshow(np.eye(3))
    label_end(ax, 2, "a line", "red")
    spread_labels(figure)
    return figure


def test_three_formats_with_the_same_bytes_every_time(tmp_path: Path) -> None:
    files = save_figure(drawn(), tmp_path / "one" / "v1.2")
    assert [path.name for path in files] == ["v1.2.png", "v1.2.pdf", "v1.2.svg"]
    assert files == figure_files(tmp_path / "one" / "v1.2")
    png, pdf, svg = (path.read_bytes() for path in files)
    assert png.startswith(b"\x89PNG")
    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (240, 120)
    assert pdf.startswith(b"%PDF")
    assert b"a line" in svg  # text, not outlines
    assert b"Date" not in pdf
    assert b"date" not in svg
    again = save_figure(drawn(), tmp_path / "two" / "v1.2")
    assert [path.read_bytes() for path in again] == [png, pdf, svg]


def test_a_suffix_chooses_a_single_format(tmp_path: Path) -> None:
    assert save_figure(drawn(), tmp_path / "a.pdf") == [tmp_path / "a.pdf"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.pdf"]


@pytest.mark.parametrize(
    ("values", "extend", "note"),
    [
        ([0, 5, np.nan], "neither", ""),
        ([0, 5.1, np.inf], "max", "2 states above 5"),
        ([-1, 5], "min", "1 state below 0"),
        ([-1, 6], "both", "1 state below 0, 1 state above 5"),
    ],
)
def test_clipping_is_noted_exactly_when_values_clip(values: list[float], extend: str, note: str) -> None:
    assert clipping(values, 0, 5, "states") == (extend, note)


def test_spread_by_hand() -> None:
    assert spread(np.array([0.5, 0.1]), 0.2).tolist() == [0.5, 0.1]
    np.testing.assert_allclose(spread(np.array([0.5, 0.5, 0.5]), 0.1), [0.4, 0.5, 0.6])
    np.testing.assert_allclose(spread(np.array([0.9, 0.0, 0.8]), 0.3), [1.0, 0.0, 0.7])
    np.testing.assert_allclose(spread(np.array([1.0, 0.9, 0.0]), 0.2), [1.0, 0.8, 0.0])  # not above the top


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.3))
def test_spread_keeps_gaps_order_and_limits(wanted: list[float], gap: float) -> None:
    positions = spread(np.array(wanted), gap)
    order = np.argsort(wanted, kind="stable")
    assert all(after - before >= gap - 1e-9 for before, after in pairwise(positions[order]))
    if gap * (len(wanted) - 1) <= 1:
        assert positions.min() >= -1e-9
        assert positions.max() <= 1 + 1e-9
    else:
        assert positions.min() + positions.max() == pytest.approx(1)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_labels_do_not_overlap(scale: str) -> None:
    figure = Figure(figsize=(4, 2), layout="constrained")
    ax = figure.subplots()
    ax.set(ylim=(0.1, 10), yscale=scale)
    heights = [0.2, 0.21, 0.22, 9, 9.5, 9.6, 9.7]
    for height in heights:
        label_end(ax, height, f"line at {height}", "black")
    spread_labels(figure)
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in end_labels(ax)]
    assert len(boxes) == len(heights)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert [box.y0 for box in boxes] == sorted(box.y0 for box in boxes)
    assert all(ax.get_window_extent().x1 < box.x0 < box.x1 <= figure.bbox.x1 for box in boxes)


@pytest.mark.parametrize("values", [[0.011, 0.04], [1e-4, 30], [0.0049, 0.0071], [5, 5], [], [0, 2]])
def test_logarithmic_axes_have_plain_ticks_within_the_limits(values: list[float]) -> None:
    ax = Figure().subplots()
    plain_log_axis(ax, "y", values)
    low, high = ax.get_ylim()
    assert all(low < value < high for value in values if value > 0)
    ticks = ax.get_yticks()
    assert 3 <= len(ticks) <= 9  # more would overlap in a small panel
    assert low <= min(ticks)
    assert max(ticks) <= high


@pytest.mark.parametrize("panels", range(1, 20))
def test_grids_hold_all_panels(panels: int) -> None:
    rows, columns = grid_shape(panels)
    assert columns <= 4
    assert panels <= rows * columns < panels + columns
    figure = Figure()
    assert list(panel_grid(figure, rows, columns, panels)) == figure.axes
    assert len(figure.axes) == panels
