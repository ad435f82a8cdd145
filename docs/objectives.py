"""Refresh what objectives.md shows beside the tables of its study: every learner with every model, from results.csv."""

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from qrl.agents.evaluation.style import looks
from qrl.agents.studies.curves import Curve, read_curves
from qrl.agents.studies.findings import Findings
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.table import matched, read_rows
from qrl.common.figures import FRACTION_LIMITS, grid_shape, panel_grid, save_figure, tidy
from qrl.common.files import write_csv

FOLDER = Path(__file__).parent / "objectives"
TRAPS = FOLDER / "traps"
MODELS = {"iqe": "iqe-maxmean", "mrn": "mrn-fixed", "unconstrained": "unconstrained"}
METRICS = {
    "success_rate": ("success", 3),
    "all_pairs_success_rate": ("all pairs", 3),
    "unseen_success_rate": ("unseen pairs", 3),
    "ranking_accuracy": ("ranking accuracy", 3),
    "absolute_error": ("absolute error", 2),
    "signed_error": ("estimate - exact", 2),
    "ratio_cv": ("variation", 3),
    "seconds": ("seconds", 0),
}
TRAPS_METRICS = {
    "success_rate": ("success", 3),
    "all_pairs_success_rate": ("all pairs", 3),
    "absolute_error": ("absolute error, reachable", 2),
    "unreachable_estimate": ("mean estimate, unreachable", 1),
    "unreachable_beyond": ("of these longer than every exact distance", 3),
}


SIZES: tuple[dict[str, Any], ...] = ({"ls": "-"}, {"ls": (0, (1, 1.2)), "mfc": "white"})  # the larger one first
LEARNERS = ("mbold", "bounded", "qrl", "qrl-each", "mad", "cmd", "tmd", "iql", "gcbc")


def results(path: Path) -> Findings:
    folder = StudyFolder(path)
    study = folder.read_study()
    return Findings(study, matched(study, read_rows(folder.results)))


def cells(values: dict[str, float], metrics: dict[str, tuple[str, int]]) -> list[str]:
    """Means by metric, as text."""
    return [f"{values[key]:.{digits}f}" if key in values else "-" for key, (_, digits) in metrics.items()]


def objectives_table(findings: Findings, trajectories: float) -> list[list[str]]:
    """Means over the seeds at one size of the data, by learner and model."""
    titles = ["learner", "model", "rate", *(title for title, _ in METRICS.values()), "95 % of success"]
    rows = []
    for group in findings.summaries():
        if group.selected and group.condition.value == trajectories:
            learner, _, model = group.family.rpartition("-")
            low, high = group.interval or (math.nan, math.nan)
            rate = group.configuration.removeprefix("lr=")
            rows.append([learner, MODELS[model], rate, *cells(group.means, METRICS), f"{low:.3f} to {high:.3f}"])
    return [titles, *rows]


def traps_table(findings: Findings) -> list[list[str]]:
    """Means over the seeds, by learner."""
    groups = [group for group in findings.summaries() if group.family in findings.study.settings.families]
    titles = ["learner", *(title for title, _ in TRAPS_METRICS.values())]
    return [titles, *([group.family, *cells(group.means, TRAPS_METRICS)] for group in groups)]


def draw_curves(curves: Sequence[Curve], path: Path) -> None:
    """Success against processor time: a panel per learner, a colour per model, a line style per size of the data."""
    sizes = sorted({float(row["value"]) for row in curves}, reverse=True)
    styles = looks({model: model for model in MODELS.values()})
    rows, columns = grid_shape(len(LEARNERS))
    figure = Figure(figsize=(3.1 * columns, 2.1 * rows + 0.9), layout="constrained")
    axes = panel_grid(figure, rows, columns, len(LEARNERS), sharex=True, sharey=True)
    for ax, learner in zip(axes, LEARNERS, strict=True):
        for (suffix, model), (number, size) in product(MODELS.items(), enumerate(sizes)):
            lines = [row for row in curves if row["family"] == f"{learner}-{suffix}" and float(row["value"]) == size]
            _draw_line(ax, lines, styles[model].style | SIZES[number])
        ax.set_title(learner, fontsize=10)
        ax.label_outer()
        ax.tick_params(labelsize=8)
        ax.tick_params(which="minor", bottom=False)
        tidy(ax)
    axes[0].set_ylim(*FRACTION_LIMITS)
    axes[0].set_xscale("log")
    axes[0].set_xticks(ticks := [5, 10, 20, 50, 100], map(str, ticks))
    for number, ax in enumerate(axes):
        if number % columns == 0:
            ax.set_ylabel("success rate", fontsize=9)
        if number + columns >= len(axes):
            ax.set_xlabel("processor time of training, seconds", fontsize=9)
    handles = [Line2D([], [], label=model, **styles[model].style) for model in MODELS.values()]
    handles += [
        Line2D([], [], label=f"{size:,g} trajectories", color="0.3", lw=1.6, **SIZES[number])
        for number, size in enumerate(sizes)
    ]
    seeds = len({row["seed"] for row in curves})
    note = f"Points are means over {seeds} seeds; bars reach from the lowest to the highest."
    figure.legend(
        handles=handles,
        title=note,
        loc="outside lower center",
        ncols=len(handles),
        fontsize=8,
        title_fontsize=9,
        frameon=False,
    )
    figure.suptitle("Success while training")
    save_figure(figure, path)


def _draw_line(ax: Axes, rows: Sequence[Curve], style: dict[str, Any]) -> None:
    steps = sorted({int(row["step"]) for row in rows})
    if not steps:
        return
    by_step = [[row for row in rows if int(row["step"]) == step] for step in steps]
    seconds = [np.mean([float(row["seconds"]) for row in group]) for group in by_step]
    rates = [[float(row["success_rate"]) for row in group] for group in by_step]
    means = [float(np.mean(values)) for values in rates]
    reach = [[mean - min(values) for mean, values in zip(means, rates, strict=True)]]
    reach += [[max(values) - mean for mean, values in zip(means, rates, strict=True)]]
    ax.errorbar(seconds, means, reach, fmt="none", ecolor=style["color"], elinewidth=1, capsize=2)
    ax.plot(seconds, means, **style | {"ms": 4})


def main() -> None:
    findings = results(FOLDER)
    for size in findings.study.settings.values:
        write_csv(FOLDER / f"learners-{size:g}.csv", objectives_table(findings, size))
    write_csv(TRAPS / "learners.csv", traps_table(results(TRAPS)))
    draw_curves(read_curves(FOLDER / "curves.csv"), FOLDER / "curves")


if __name__ == "__main__":
    main()
