"""The figure of a study: the first metric against the axis, a panel for each world; or a ranking in one place."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qrl.agents.evaluation.pictures import REFERENCE_STYLES
from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.studies.findings import Cell, Findings
from qrl.envs.pictures import save_figure

BEST = 6  # families in the closer look
_MARKERS = "osD^vPX*<>hp"


def study_picture(findings: Findings, cells: list[Cell], path: Path) -> None:
    figure = _ranking(findings, cells) if len(findings.places) == 1 else _lines(findings, cells)
    seeds = len(findings.study.settings.seeds)
    figure.suptitle(f"{findings.study.name}; bands: 95 % bootstrap intervals over {seeds} seeds")
    save_figure(figure, path)


def _ranking(findings: Findings, cells: list[Cell]) -> Figure:
    """One place: a line for each choice of a family, the best on top."""
    metric, sign = findings.kind.metric, 1 if findings.kind.more_is_better else -1
    known = sorted((cell for cell in cells if metric in cell.means), key=lambda cell: sign * cell.means[metric])
    figure = Figure(figsize=(9, 1.6 + 0.3 * len(known)), layout="constrained")
    ax = figure.subplots()
    for row, cell in enumerate(known):
        if cell.interval is not None:
            ax.plot(cell.interval, [row, row], color="C0", lw=6, alpha=0.3, solid_capstyle="butt")
        ax.plot(cell.means[metric], row, "o", color="C0" if cell.chosen else "0.6" if cell.choice else "k")
    ax.set_yticks(range(len(known)), [_label(cell) for cell in known])
    if not findings.kind.more_is_better:
        ax.set_xscale("log")
    ax.set_xlabel(findings.kind.metrics[metric].title)
    world, value = findings.places[0]
    ax.set_title(f"{f'{world}, ' if world else ''}{findings.study.settings.axis_name} {value:g}")
    ax.grid(alpha=0.3)
    return figure


def _lines(findings: Findings, cells: list[Cell]) -> Figure:
    """A panel for each world: the metric against the axis."""
    worlds = list(findings.study.settings.worlds) or [""]
    closer = len(worlds) == 1 and len(findings.chosen) > BEST
    panels = len(worlds) + closer
    figure = Figure(figsize=(4 + 5 * panels, 7), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    styles = {family: _style(number) for number, family in enumerate(findings.chosen)}
    for ax, world in zip(axes, worlds, strict=False):
        here = [cell for cell in cells if cell.place[0] == world]
        for family, style in styles.items():
            _draw_family(ax, findings, [cell for cell in here if cell.family == family], style, with_choices=True)
        for name in findings.references:
            _draw_reference(ax, findings, [cell for cell in here if cell.family == name])
        _frame(ax, findings, findings.study.settings.values, world or "all families; thin lines: every choice")
        if findings.kind.more_is_better:
            ax.set_ylim(-0.03, 1.03)
    if closer:
        _draw_best(axes[1], findings, [cell for cell in cells if cell.family not in REFERENCES], styles)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def _draw_best(ax: Axes, findings: Findings, cells: list[Cell], styles: dict[str, dict[str, Any]]) -> None:
    values = findings.study.settings.values
    much = values[len(values) // 2 :]
    metric, sign = findings.kind.metric, -1 if findings.kind.more_is_better else 1
    last = [cell for cell in cells if cell.chosen and cell.place[1] == values[-1] and metric in cell.means]
    best = [cell.family for cell in sorted(last, key=lambda cell: sign * cell.means[metric])[:BEST]]
    for family in best:
        own = [cell for cell in cells if cell.family == family and cell.place[1] in much]
        _draw_family(ax, findings, own, styles[family], with_choices=False)
    _frame(ax, findings, much, f"the {len(best)} best at {values[-1]:,g}")


def _style(number: int) -> dict[str, Any]:
    colours = colormaps["tab10"].colors  # type: ignore[attr-defined]
    return {
        "color": colours[number % 10],
        "marker": _MARKERS[number % len(_MARKERS)],
        "ls": ("-", "--", "-.")[number // 10 % 3],
    }


def _draw_family(ax: Axes, findings: Findings, cells: list[Cell], style: dict[str, Any], with_choices: bool) -> None:
    metric = findings.kind.metric
    for choice in dict.fromkeys(cell.choice for cell in cells):
        own = [cell for cell in cells if cell.choice == choice and metric in cell.means]
        if not own:
            continue
        x, y = [cell.place[1] for cell in own], [cell.means[metric] for cell in own]
        if own[0].chosen:
            ax.plot(x, y, lw=2, ms=6, label=_label(own[0]), **style)
            bands = [cell.interval for cell in own if cell.interval is not None]
            if len(bands) == len(own):
                low, high = np.transpose(bands)
                ax.fill_between(x, low, high, color=style["color"], alpha=0.13, lw=0)
        elif with_choices:
            ax.plot(x, y, lw=0.6, color=style["color"], ls=style["ls"])


def _label(cell: Cell) -> str:
    return cell.family + (f" ({cell.choice})" if cell.choice else "")


def _draw_reference(ax: Axes, findings: Findings, cells: list[Cell]) -> None:
    shown = [cell for cell in cells if findings.kind.metric in cell.means]
    x, y = [cell.place[1] for cell in shown], [cell.means[findings.kind.metric] for cell in shown]
    ax.plot(x, y, label=f"({cells[0].family})", **REFERENCE_STYLES[cells[0].family])


def _frame(ax: Axes, findings: Findings, values: list[float], title: str) -> None:
    ax.set_title(title)
    if len(values) > 1 and min(values) > 0:
        ax.set_xscale("log")
    if not findings.kind.more_is_better:
        ax.set_yscale("log")
    ax.set_xticks(values, [f"{value:,g}" for value in values])
    ax.xaxis.set_tick_params(which="minor", bottom=False, labelbottom=False)
    ax.set_xlabel(findings.study.settings.axis_name)
    ax.set_ylabel(findings.kind.metrics[findings.kind.metric].title)
    ax.grid(alpha=0.3)
