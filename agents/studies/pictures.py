"""The figure of a study: the ranking metric against the axis, one panel per world; or a ranking under one condition."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qrl.agents.evaluation.pictures import REFERENCE_STYLES
from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.studies.findings import Findings, GroupSummary
from qrl.envs.pictures import save_figure

BEST = 6  # families in the closer look
_MARKERS = "osD^vPX*<>hp"


def study_picture(findings: Findings, groups: list[GroupSummary], path: Path) -> None:
    figure = _ranking(findings, groups) if len(findings.conditions) == 1 else _lines(findings, groups)
    seeds = len(findings.study.settings.seeds)
    figure.suptitle(f"{findings.study.name}; bands: 95 % bootstrap intervals over {seeds} seeds")
    save_figure(figure, path)


def _ranking(findings: Findings, groups: list[GroupSummary]) -> Figure:
    """One condition: a line per configuration of a family, the best on top."""
    metric, sign = findings.kind.ranking, 1 if findings.kind.higher_is_better else -1
    ranked = sorted((group for group in groups if metric in group.means), key=lambda group: sign * group.means[metric])
    figure = Figure(figsize=(9, 1.6 + 0.3 * len(ranked)), layout="constrained")
    ax = figure.subplots()
    for row, group in enumerate(ranked):
        if group.interval is not None:
            ax.plot(group.interval, [row, row], color="C0", lw=6, alpha=0.3, solid_capstyle="butt")
        ax.plot(group.means[metric], row, "o", color="C0" if group.selected else "0.6" if group.configuration else "k")
    ax.set_yticks(range(len(ranked)), [_label(group) for group in ranked])
    if not findings.kind.higher_is_better:
        ax.set_xscale("log")
    ax.set_xlabel(findings.kind.title(metric))
    world, value = findings.conditions[0]
    ax.set_title(f"{f'{world}, ' if world else ''}{findings.study.settings.axis_name} {value:g}")
    ax.grid(alpha=0.3)
    return figure


def _lines(findings: Findings, groups: list[GroupSummary]) -> Figure:
    """One panel per world: the metric against the axis."""
    worlds = list(findings.study.settings.worlds) or [""]
    values = findings.study.settings.values
    closer = len(worlds) == 1 and len(findings.selected) > BEST and len(values) > 2  # else it would be a single point
    panels = len(worlds) + closer
    figure = Figure(figsize=(4 + 5 * panels, 7), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    styles = {family: _style(number) for number, family in enumerate(findings.selected)}
    for ax, world in zip(axes, worlds, strict=False):
        in_world = [group for group in groups if group.condition.world == world]
        for family, style in styles.items():
            _draw_family(
                ax, findings, [group for group in in_world if group.family == family], style, all_configurations=True
            )
        for name in findings.references:
            _draw_reference(ax, findings, [group for group in in_world if group.family == name])
        _frame(ax, findings, findings.study.settings.values, world or "all families; thin lines: every configuration")
        if findings.kind.higher_is_better:
            ax.set_ylim(-0.03, 1.03)
    if closer:
        _draw_best(axes[1], findings, [group for group in groups if group.family not in REFERENCES], styles)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def _draw_best(ax: Axes, findings: Findings, groups: list[GroupSummary], styles: dict[str, dict[str, Any]]) -> None:
    values = findings.study.settings.values
    largest = values[len(values) // 2 :]
    metric, sign = findings.kind.ranking, -1 if findings.kind.higher_is_better else 1
    last = [
        group for group in groups if group.selected and group.condition.value == values[-1] and metric in group.means
    ]
    best = [group.family for group in sorted(last, key=lambda group: sign * group.means[metric])[:BEST]]
    for family in best:
        members = [group for group in groups if group.family == family and group.condition.value in largest]
        _draw_family(ax, findings, members, styles[family], all_configurations=False)
    _frame(ax, findings, largest, f"the {len(best)} best at {values[-1]:,g}")


def _style(number: int) -> dict[str, Any]:
    colors = colormaps["tab10"].colors  # type: ignore[attr-defined]
    return {
        "color": colors[number % 10],
        "marker": _MARKERS[number % len(_MARKERS)],
        "ls": ("-", "--", "-.")[number // 10 % 3],
    }


def _draw_family(
    ax: Axes, findings: Findings, groups: list[GroupSummary], style: dict[str, Any], all_configurations: bool
) -> None:
    metric = findings.kind.ranking
    for configuration in dict.fromkeys(group.configuration for group in groups):
        line = [group for group in groups if group.configuration == configuration and metric in group.means]
        if not line:
            continue
        x, y = [group.condition.value for group in line], [group.means[metric] for group in line]
        if line[0].selected:
            ax.plot(x, y, lw=2, ms=6, label=_label(line[0]), **style)
            bands = [group.interval for group in line if group.interval is not None]
            if len(bands) == len(line):
                low, high = np.transpose(bands)
                ax.fill_between(x, low, high, color=style["color"], alpha=0.13, lw=0)
        elif all_configurations:
            ax.plot(x, y, lw=0.6, color=style["color"], ls=style["ls"])


def _label(group: GroupSummary) -> str:
    return group.family + (f" ({group.configuration})" if group.configuration else "")


def _draw_reference(ax: Axes, findings: Findings, groups: list[GroupSummary]) -> None:
    metric = findings.kind.ranking
    shown = [group for group in groups if metric in group.means]
    x, y = [group.condition.value for group in shown], [group.means[metric] for group in shown]
    ax.plot(x, y, label=f"({groups[0].family})", **REFERENCE_STYLES[groups[0].family])


def _frame(ax: Axes, findings: Findings, values: list[float], title: str) -> None:
    ax.set_title(title)
    if len(values) > 1 and min(values) > 0:
        ax.set_xscale("log")
    if not findings.kind.higher_is_better:
        ax.set_yscale("log")
    ax.set_xticks(values, [f"{value:,g}" for value in values])
    ax.xaxis.set_tick_params(which="minor", bottom=False, labelbottom=False)
    ax.set_xlabel(findings.study.settings.axis_name)
    ax.set_ylabel(findings.kind.title(findings.kind.ranking))
    ax.grid(alpha=0.3)
