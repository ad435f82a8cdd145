"""The figure of a study: success against the number of training trajectories, and a closer look at the best."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from agents.pictures import REFERENCE_STYLES
from agents.studies.findings import Cell, Findings
from envs.pictures import save_figure

BEST = 6  # families in the closer look
_MARKERS = "osD^vPX*<>hp"


def study_picture(findings: Findings, cells: list[Cell], path: Path) -> None:
    figure = Figure(figsize=(14, 7), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    styles = {family: _style(number) for number, family in enumerate(findings.chosen)}
    for family, style in styles.items():
        _draw_family(left, [cell for cell in cells if cell.family == family], style, with_choices=True)
    for name in findings.references:
        _draw_reference(left, [cell for cell in cells if cell.family == name])
    best, much = _best(findings, cells), findings.sizes[len(findings.sizes) // 2 :]
    for family in best:
        own = [cell for cell in cells if cell.family == family and cell.trajectories in much]
        _draw_family(right, own, styles[family], with_choices=False)
    _frame(left, findings.sizes, "all families; thin lines: every hyperparameter choice")
    _frame(right, much, f"the {len(best)} best with {findings.sizes[-1]:,} trajectories")
    left.set_ylim(-0.03, 1.03)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(
        f"{findings.study.name}: greedy planning with learned distances; bands: 95 % bootstrap intervals over "
        f"{len(findings.study.settings.seeds)} seeds"
    )
    save_figure(figure, path)


def _best(findings: Findings, cells: list[Cell]) -> list[str]:
    last = [cell for cell in cells if cell.chosen and cell.trajectories == findings.sizes[-1] and cell.complete]
    return [cell.family for cell in sorted(last, key=lambda cell: -(cell.success_rate or 0))[:BEST]]


def _style(number: int) -> dict[str, Any]:
    colours = colormaps["tab10"].colors  # type: ignore[attr-defined]
    return {
        "color": colours[number % 10],
        "marker": _MARKERS[number % len(_MARKERS)],
        "ls": ("-", "--", "-.")[number // 10 % 3],
    }


def _draw_family(ax: Axes, cells: list[Cell], style: dict[str, Any], with_choices: bool) -> None:
    for choice in sorted({cell.choice for cell in cells}):
        own = [cell for cell in cells if cell.choice == choice and cell.success_rate is not None]
        x, y = _column(own, "trajectories"), _column(own, "success_rate")
        if not own:
            continue
        if own[0].chosen:
            label = own[0].family + (f" ({choice})" if choice else "")
            ax.plot(x, y, lw=2, ms=6, label=label, **style)
            if all(cell.success_low is not None for cell in own):
                low, high = _column(own, "success_low"), _column(own, "success_high")
                ax.fill_between(x, low, high, color=style["color"], alpha=0.13, lw=0)
        elif with_choices:
            ax.plot(x, y, lw=0.6, color=style["color"], ls=style["ls"])


def _draw_reference(ax: Axes, cells: list[Cell]) -> None:
    shown = [cell for cell in cells if cell.success_rate is not None]
    name = cells[0].family
    ax.plot(_column(shown, "trajectories"), _column(shown, "success_rate"), label=f"({name})", **REFERENCE_STYLES[name])


def _column(cells: list[Cell], key: str) -> NDArray[np.float64]:
    return np.array([getattr(cell, key) for cell in cells], np.float64)


def _frame(ax: Axes, sizes: list[int], title: str) -> None:
    ax.set_title(title)
    if len(sizes) > 1:
        ax.set_xscale("log")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    ax.set_xlabel("training trajectories")
    ax.set_ylabel("success rate")
    ax.grid(alpha=0.3)
