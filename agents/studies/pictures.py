"""The figures of a study: the ranking metric against the axis in small multiples, and against the training steps.

At a single value of the axis, the first one is a ranking.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from qrl.agents.evaluation.style import REFERENCE_STYLES, Look, looks
from qrl.agents.studies.curves import Curve
from qrl.agents.studies.findings import Findings, GroupSummary
from qrl.agents.studies.panels import Panel, panels
from qrl.agents.studies.selection import Place, place_of
from qrl.agents.studies.settings import Condition, axis_text
from qrl.common.figures import (
    FRACTION_LIMITS,
    grid_shape,
    label_end,
    panel_grid,
    plain_log_axis,
    save_figure,
    spread_labels,
    tidy,
)

_OTHERS: dict[str, Any] = {"color": "0.85", "lw": 1, "zorder": 1}
_THIN: dict[str, Any] = {"lw": 0.6, "zorder": 2}
_BAR: dict[str, Any] = {"elinewidth": 1.3, "capsize": 2.5, "fmt": "none", "zorder": 3}


def study_picture(findings: Findings, groups: list[GroupSummary], path: Path) -> list[Path]:
    """Draw the figure and return its files."""
    shown = [group for group in groups if findings.kind.ranking in group.means]
    figure = _ranking(findings, shown) if len(findings.study.settings.values) == 1 else _lines(findings, shown)
    spread_labels(figure)
    return save_figure(figure, path)


def _note(findings: Findings, groups: Sequence[GroupSummary]) -> str:
    """How points and bars are to be read."""
    families = findings.study.settings.families
    learned = [group for group in groups if group.selected and group.family in families]
    points = _means_over([group.complete for group in learned])
    bars = "; bars are 95 % bootstrap intervals" if any(group.interval for group in learned) else ""
    return f"{points}{bars}."


def _means_over(seeds: Sequence[int]) -> str:
    """`seeds`: how many of them each point has."""
    fewest, most = min(seeds, default=0), max(seeds, default=0)
    if most < 2:
        return "Points are the values of a single seed"
    return f"Points are means over {most if fewest == most else f'{fewest} to {most}'} seeds"


# Lines


def _lines(findings: Findings, groups: list[GroupSummary]) -> Figure:
    settings, title = findings.study.settings, findings.kind.title(findings.kind.ranking)
    grid = panels(settings)

    def draw(ax: Axes, panel: Panel) -> None:
        _draw_panel(ax, findings, [group for group in groups if group.condition.world == panel.world], panel)

    figure = _panel_figure(grid, settings.axis_name, title, draw)
    figure.suptitle(f"{findings.study.name}: {title} by {settings.axis_name}")
    _add_legend(figure, _legend(findings, grid, groups), _note(findings, groups))
    return figure


def _panel_figure(
    grid: Sequence[Sequence[Panel | None]], x_title: str, y_title: str, draw: Callable[[Axes, Panel], None]
) -> Figure:
    rows, columns = len(grid), len(grid[0])
    size = (3.35 if columns > 2 else 4 if columns == 2 else 6.5, 2.8 if rows == 1 else 2.2 if rows < 5 else 1.95)
    figure = Figure(figsize=(columns * size[0], 1 + rows * size[1]), layout="constrained")
    axes = panel_grid(figure, rows, columns, rows * columns)
    for row, column in np.ndindex(rows, columns):
        ax, panel = axes[row * columns + column], grid[row][column]
        if panel is None:
            ax.remove()
            continue
        draw(ax, panel)
        if panel.title:
            ax.set_title(panel.title, fontsize=9)
        ax.tick_params(labelsize=8)
        if column == 0:
            ax.set_ylabel(y_title, fontsize=9)
        if row == rows - 1 or grid[row + 1][column] is None:
            ax.set_xlabel(x_title, fontsize=9)
        tidy(ax)
    return figure


def _add_legend(figure: Figure, handles: list[Line2D], note: str) -> None:
    figure.legend(
        handles=handles,
        title=note,
        title_fontsize=9,
        loc="outside lower center",
        ncols=5,
        fontsize=8,
        frameon=False,
    )


def _legend(findings: Findings, grid: Iterable[Iterable[Panel | None]], groups: Sequence[GroupSummary]) -> list[Line2D]:
    """What is not labelled in the panels."""
    entries = [Line2D([], [], label=name, **REFERENCE_STYLES[name]) for name in findings.references]
    families = findings.study.settings.families.items()
    drawn = [panel for row in grid for panel in row if panel is not None]
    if any(family.runs_in(panel.world) and name not in panel.looks for panel in drawn for name, family in families):
        entries.append(Line2D([], [], label="other families", **_OTHERS))
    if any(group.configuration and not group.selected for group in groups):
        entries.append(Line2D([], [], label="other configurations of the family", color="0.3", lw=0.6))
    return entries


def _draw_panel(ax: Axes, findings: Findings, groups: Sequence[GroupSummary], panel: Panel) -> None:
    """`groups`: those of the panel's world."""
    settings, metric = findings.study.settings, findings.kind.ranking
    logarithmic = min(settings.values) > 0
    ax.plot(*_others(groups, metric, [name for name in settings.families if name not in panel.looks]), **_OTHERS)
    for name in findings.references:
        ax.plot(*_points([group for group in groups if group.family == name], metric), **REFERENCE_STYLES[name])
    for number, (name, look) in enumerate(panel.looks.items()):
        members = [group for group in groups if group.family == name]
        for configuration in dict.fromkeys(group.configuration for group in members if not group.selected):
            line = [group for group in members if group.configuration == configuration]
            ax.plot(*_points(line, metric), color=look.color, ls=look.line, **_THIN)
        # Neighbouring points are moved apart sideways, so that their bars do not cover each other.
        offset = 0.018 * (number - (len(panel.looks) - 1) / 2)
        chosen = [group for group in members if group.selected]
        _draw_family(ax, chosen, metric, look, _shifted(settings.values, offset, logarithmic))
    _frame(ax, findings, groups, logarithmic)


def _points(groups: Sequence[GroupSummary], metric: str) -> tuple[list[float], list[float]]:
    return [group.condition.value for group in groups], [group.means[metric] for group in groups]


def _others(groups: Sequence[GroupSummary], metric: str, names: Iterable[str]) -> tuple[list[float], list[float]]:
    """The lines of other families as one, with gaps: a single path keeps vector files small."""
    lines = [_points([group for group in groups if group.family == name and group.selected], metric) for name in names]
    return [x for line in lines for x in (*line[0], np.nan)], [y for line in lines for y in (*line[1], np.nan)]


def _shifted(values: Sequence[float], offset: float, logarithmic: bool) -> dict[float, float]:
    """Positions of the values, moved by a fraction of the width of the axis."""
    low, high = min(values), max(values)
    if logarithmic:
        return {value: value * (high / low) ** offset for value in values}
    return {value: value + (high - low) * offset for value in values}


def _draw_family(
    ax: Axes, groups: Sequence[GroupSummary], metric: str, look: Look, positions: dict[float, float]
) -> None:
    if not groups:
        return
    values, means = _points(groups, metric)
    x = [positions[value] for value in values]
    ax.errorbar(x, means, _reach(groups, metric), ecolor=look.color, **_BAR)
    ax.plot(x, means, zorder=4, **look.style)
    label_end(ax, means[-1], groups[0].family, look.color)


def _reach(groups: Sequence[GroupSummary], metric: str) -> NDArray[np.float64]:
    """(2, groups): how far the intervals reach below and above the means; NaN where there is none."""
    ends = np.array([group.interval or (np.nan, np.nan) for group in groups]).T
    means = np.array([group.means[metric] for group in groups])
    return np.maximum([means - ends[0], ends[1] - means], 0)


def _frame(ax: Axes, findings: Findings, groups: Sequence[GroupSummary], logarithmic: bool) -> None:
    values = findings.study.settings.values
    if logarithmic:
        ax.set_xscale("log")
    left, right = (_shifted(values, side, logarithmic) for side in (-0.07, 0.07))
    ax.set_xlim(left[min(values)], right[max(values)])
    ax.set_xticks(values, [f"{value:,.3g}" if value < 1 else f"{value:,g}" for value in values])
    ax.xaxis.set_tick_params(which="minor", bottom=False, labelbottom=False)
    _frame_metric(ax, findings, _drawn(findings, groups))


def _frame_metric(ax: Axes, findings: Findings, drawn: list[float]) -> None:
    """The same limits in all panels of a world, so that they can be compared."""
    if findings.kind.higher_is_better:
        ax.set_ylim(*FRACTION_LIMITS)
    else:
        plain_log_axis(ax, "y", drawn)


def _drawn(findings: Findings, groups: Sequence[GroupSummary]) -> list[float]:
    """All values that points and bars reach."""
    return [value for group in groups for value in (group.means[findings.kind.ranking], *(group.interval or ()))]


# Curves


def curves_picture(findings: Findings, curves: Sequence[Curve], path: Path) -> list[Path]:
    """Draw what the selected configurations score while they are trained, at the largest value of the axis.

    Returns the files of the figure: none where no run was scored more than once.
    """
    settings, metric, value = findings.study.settings, findings.kind.ranking, max(findings.study.settings.values)
    points: dict[Place, dict[int, list[float]]] = {}
    for row in curves:
        place = place_of(findings.study, row["family"], Condition(row["world"], value))
        if row["value"] == axis_text(value) and row["choice"] == findings.selected.get(place) and row.get(metric):
            points.setdefault(place, {}).setdefault(int(row["step"]), []).append(float(row[metric]))
    if max(map(len, points.values()), default=0) < 2:
        return []
    means = {
        place: {step: float(np.mean(by_step[step])) for step in sorted(by_step)} for place, by_step in points.items()
    }

    def draw(ax: Axes, panel: Panel) -> None:
        for name, look in panel.looks.items():
            line = means.get(place_of(findings.study, name, Condition(panel.world, value)))
            if line is not None:
                ax.plot(list(line), list(line.values()), **look.style)
                label_end(ax, line[max(line)], name, look.color)
        ax.set_xlim(0, 1.03 * last)
        ax.xaxis.set_major_formatter("{x:,g}")
        in_world = [mean for place, line in means.items() if place.world == panel.world for mean in line.values()]
        _frame_metric(ax, findings, in_world)

    title, last = findings.kind.title(metric), max(step for line in means.values() for step in line)
    figure = _panel_figure(panels(settings), "training steps", title, draw)
    figure.suptitle(f"{findings.study.name}: {title} while training, {settings.axis_name} {value:,g}")
    counts = [len(values) for by_step in points.values() for values in by_step.values()]
    _add_legend(figure, [], f"{_means_over(counts)}.")
    spread_labels(figure)
    return save_figure(figure, path)


# A ranking


def _ranking(findings: Findings, groups: list[GroupSummary]) -> Figure:
    """One value of the axis: a row per configuration of a family, the best on top, and a panel per world."""
    metric, sign = findings.kind.ranking, 1 if findings.kind.higher_is_better else -1
    rows: dict[str, list[GroupSummary]] = {}
    for group in groups:
        rows.setdefault(_label(group), []).append(group)
    ranked = sorted(rows, key=lambda label: sign * float(np.mean([group.means[metric] for group in rows[label]])))
    families = findings.study.settings.families
    styles = looks({name: family.model or name for name, family in families.items()})
    worlds = list(findings.study.settings.worlds) or [""]
    lines, columns = grid_shape(len(worlds))
    labels = max(2.6, 0.085 * max(map(len, ranked), default=0))  # inches
    figure = Figure(figsize=(labels + 3 * columns, 1.3 + lines * (0.9 + 0.24 * len(ranked))), layout="constrained")
    axes = panel_grid(figure, lines, columns, len(worlds), sharex=True, sharey=True)
    for ax, world in zip(axes, worlds, strict=True):
        for place, label in enumerate(ranked):
            for group in rows[label]:
                if group.condition.world == world:
                    _draw_ranked(ax, place, group, metric, styles.get(group.family))
        ax.set_title(world, fontsize=10)
        if findings.kind.higher_is_better:
            ax.set_xlim(*FRACTION_LIMITS)
        else:
            plain_log_axis(ax, "x", _drawn(findings, groups))
        tidy(ax)
    axes[0].set_yticks(range(len(ranked)), ranked)
    axes[0].set_ylim(-0.7, len(ranked) - 0.3)  # not a margin that grows with the rows
    settings = findings.study.settings
    figure.suptitle(f"{findings.study.name}: {settings.axis_name} {settings.values[0]:,g}")
    figure.supxlabel(f"{findings.kind.title(metric)}\n{_note(findings, groups)}", fontsize=10)
    return figure


def _draw_ranked(ax: Axes, place: int, group: GroupSummary, metric: str, look: Look | None) -> None:
    """Families in their look, faint where another configuration was selected; references in black."""
    style = {"marker": "d", "color": "black"} if look is None else {**look.style, "ls": ""}
    alpha = 1 if look is None or group.selected else 0.35
    ax.errorbar(group.means[metric], place, xerr=_reach([group], metric), ecolor=style["color"], **_BAR)
    ax.plot(group.means[metric], place, alpha=alpha, zorder=4, **style)


def _label(group: GroupSummary) -> str:
    return group.family + (f" ({group.configuration})" if group.configuration else "")
