"""Figures for papers: one way to save them, labels at the ends of lines, and colour scales that say when they clip."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from qrl.common.files import FIGURE_FORMATS, atomic_write

FRACTION_LIMITS = (-0.03, 1.03)  # of an axis of fractions: always whole, with room for markers
# Text stays text: SVGs are small, and PDFs have fonts that publishers accept. Fixed salt: the same ids every time.
_SAVING: Any = {"svg.fonttype": "none", "svg.hashsalt": "qrl", "pdf.fonttype": 42}
_SAVING["font.sans-serif"] = ["DejaVu Sans", "Verdana"]  # an SVG names them with every text
# Dates would make the bytes of every regenerated file differ.
_METADATA: dict[str, dict[str, Any]] = {".png": {}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
_DPI = {".png": 120, ".pdf": 200, ".svg": 200}  # of vector formats: what is rasterized in them


def figure_files(path: str | Path) -> list[Path]:
    """The files that `save_figure` writes: `path` if it ends in a format, else one per format beside each other."""
    path = Path(path)
    suffixes = ("",) if path.suffix in FIGURE_FORMATS else FIGURE_FORMATS
    return [path.with_name(path.name + suffix) for suffix in suffixes]


def save_figure(figure: Figure, path: str | Path) -> list[Path]:
    """Write the `figure_files`, each atomically; a figure that is drawn again has the same bytes."""
    files = figure_files(path)
    contents = []
    with rc_context(_SAVING):
        for file in files:  # all are rendered before the first is written
            kind = file.suffix
            content = io.BytesIO()
            figure.savefig(content, format=kind.removeprefix("."), dpi=_DPI[kind], metadata=_METADATA[kind])
            contents.append(content.getvalue())
    for file, rendered in zip(files, contents, strict=True):
        with atomic_write(file) as target:
            target.write(rendered)
    return files


def tidy(ax: Axes) -> None:
    """A light grid, and a frame only where the axes are."""
    ax.grid(alpha=0.3, lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def plain_log_axis(ax: Axes, which: Literal["x", "y"], values: ArrayLike) -> None:
    """A logarithmic axis around all positive values, whose ticks are plain numbers and at least three."""
    numbers = np.asarray(values, np.float64)
    positive = numbers[numbers > 0] if (numbers > 0).any() else np.ones(1)  # nothing to show yet
    low, high = positive.min() / 1.15, positive.max() * 1.15
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    decades = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    candidates = [np.ravel(np.outer(decades, parts)) for parts in ([1], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], range(1, 10))]
    candidates.append(np.asarray(MaxNLocator(5).tick_values(low, high)))  # for less than an octave, as on a linear axis
    for ticks in candidates:
        ticks = ticks[(low <= ticks) & (ticks <= high)]
        if len(ticks) >= 3:
            break
    axis = {"x": ax.xaxis, "y": ax.yaxis}[which]
    axis.set_major_locator(FixedLocator(ticks.tolist()))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


# Colour scales


class Clipping(NamedTuple):
    """How a colour bar or an axis tells which values lie outside of it."""

    extend: Literal["neither", "min", "max", "both"]
    note: str  # empty if no value does


def clipping(values: ArrayLike, low: float, high: float, what: str) -> Clipping:
    """Of the values that are not NaN, how many of `what` lie below `low` or above `high`."""
    numbers = np.asarray(values, np.float64)
    below, above = int((numbers < low).sum()), int((numbers > high).sum())
    counts = ((below, f"below {low:g}"), (above, f"above {high:g}"))
    parts = [f"{count:,} {what if count > 1 else what.removesuffix('s')} {where}" for count, where in counts if count]
    extend: Literal["neither", "min", "max", "both"] = "neither"
    if below or above:
        extend = "both" if below and above else "min" if below else "max"
    return Clipping(extend, ", ".join(parts))


# Labels at the ends of lines

_LABEL = "end label"


def label_end(ax: Axes, y: float, text: str, color: Any, fontsize: float = 8) -> None:
    """Name a line that ends at height `y` of the data, right of the axes; `spread_labels` then parts the labels."""
    label = ax.text(
        1.04, y, text, transform=ax.get_yaxis_transform(), color=color, fontsize=fontsize, va="center_baseline"
    )
    label.set_gid(_LABEL)


def end_labels(ax: Axes) -> list[Text]:
    return [text for text in ax.texts if text.get_gid() == _LABEL]


def spread_labels(figure: Figure) -> None:
    """Move the labels of each panel up and down until none overlaps, and connect them to the ends of their lines.

    The last thing done to a figure before it is saved: positions depend on the final size of the panels.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the sizes stay what they are now
    for ax in figure.axes:
        labels = end_labels(ax)
        if not labels:
            continue
        height = ax.get_window_extent().height
        to_axes = ax.get_yaxis_transform() + ax.transAxes.inverted()
        wanted = np.array([to_axes.transform((0, label.get_position()[1]))[1] for label in labels])
        gap = 1.06 * max(label.get_window_extent().height for label in labels) / height
        for label, end, y in zip(labels, wanted, spread(wanted, gap), strict=True):
            label.set_transform(ax.transAxes)
            label.set_position((1.04, y))
            ax.plot([1, 1.03], [end, y], color=label.get_color(), lw=0.8, transform=ax.transAxes, clip_on=False)


def spread(wanted: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Positions from 0 to 1, at least `gap` apart, in the order of those wanted and as near to them as possible.

    By least squares, that is isotonic regression of what remains when the gaps are subtracted: neighbours that violate
    the order are pooled and share their mean. Where there is no room for all gaps, positions pass both ends equally.
    """
    order = np.argsort(wanted, kind="stable")
    pools: list[tuple[float, int]] = []  # mean and size
    for rank, value in enumerate(wanted[order]):
        mean, size = float(value) - rank * gap, 1
        while pools and pools[-1][0] > mean:
            other, count = pools.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        pools.append((mean, size))
    positions = np.empty(len(wanted))
    needed = gap * (len(wanted) - 1)
    low, high = (0, 1 - needed) if needed <= 1 else ((1 - needed) / 2,) * 2
    remaining = np.clip(np.repeat([mean for mean, _ in pools], [size for _, size in pools]), low, high)
    positions[order] = remaining + gap * np.arange(len(wanted))
    return positions


def grid_shape(panels: int) -> tuple[int, int]:
    """Rows and columns of a grid that is at most four wide and has few empty places."""
    columns = min(range(min(panels, 4), min(panels, 3) - 1, -1), key=lambda width: -panels % width)
    return math.ceil(panels / columns), columns


def panel_grid(figure: Figure, rows: int, columns: int, used: int, **options: Any) -> Sequence[Axes]:
    """The first `used` axes of a grid, row by row; the others are removed."""
    axes: Sequence[Axes] = list(figure.subplots(rows, columns, squeeze=False, **options).flat)
    for ax in axes[used:]:
        ax.remove()
    return axes[:used]
