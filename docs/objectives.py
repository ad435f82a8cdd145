"""Refresh what objectives.md shows beside the tables of its study: every learner with every model, from results.csv."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qrl.agents.studies.curves import Curve, read_curves
from qrl.agents.studies.findings import Findings
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.table import matched, read_rows
from qrl.common.files import write_csv
from qrl.envs.pictures import save_figure

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
    """Success against processor time, a panel per model and size of the data, a line per learner."""
    sizes = sorted({float(row["value"]) for row in curves})
    figure = Figure(figsize=(4.6 * len(sizes) + 1.6, 3 * len(MODELS)), layout="constrained")
    axes = figure.subplots(len(MODELS), len(sizes), sharex=True, sharey=True, squeeze=False)
    for (suffix, model), line in zip(MODELS.items(), axes, strict=True):
        for size, ax in zip(sizes, line, strict=True):
            for number, learner in enumerate(LEARNERS):
                rows = [row for row in curves if row["family"] == f"{learner}-{suffix}" and float(row["value"]) == size]
                _draw_line(ax, rows, learner, number)
            ax.set_title(f"{model}, {size:g} trajectories", fontsize=10)
            ax.grid(alpha=0.3)
    for ax in axes[-1]:
        ax.set_xlabel("processor time of training, seconds")
    for ax in axes[:, 0]:
        ax.set_ylabel("success rate")
    axes[0, 0].set_ylim(-0.03, 1.03)
    axes[0, 0].set_xscale("log")
    axes[0, 0].set_xticks(ticks := [5, 10, 20, 50, 100], map(str, ticks))
    axes[0, 0].xaxis.set_tick_params(which="minor", bottom=False)
    handles = {label: handle for ax in axes.flat for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend([handles[name] for name in LEARNERS], LEARNERS, loc="outside right upper", frameon=False)
    seeds = len({row["seed"] for row in curves})
    figure.suptitle(f"Success while training, mean of {seeds} seeds")
    save_figure(figure, path)


def _draw_line(ax: Axes, rows: Sequence[Curve], learner: str, number: int) -> None:
    steps = sorted({int(row["step"]) for row in rows})
    if not steps:
        return
    by_step = [[row for row in rows if int(row["step"]) == step] for step in steps]
    seconds = [np.mean([float(row["seconds"]) for row in group]) for group in by_step]
    success = [np.mean([float(row["success_rate"]) for row in group]) for group in by_step]
    style = {"marker": "osD^vPX*<"[number], "ls": ("-", "--", ":")[number % 3], "color": f"C{number}"}
    ax.plot(seconds, success, label=learner, ms=5, lw=1.6, **style)


def main() -> None:
    findings = results(FOLDER)
    for size in findings.study.settings.values:
        write_csv(FOLDER / f"learners-{size:g}.csv", objectives_table(findings, size))
    write_csv(TRAPS / "learners.csv", traps_table(results(TRAPS)))
    draw_curves(read_curves(FOLDER / "curves.csv"), FOLDER / "curves.png")


if __name__ == "__main__":
    main()
