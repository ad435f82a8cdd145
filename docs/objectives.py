"""Refresh what objectives.md shows beside the tables of its study: learners against models, and curves against time."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from qrl.agents.studies.curves import read_curves
from qrl.agents.studies.findings import Findings, GroupSummary
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.table import matched, read_rows
from qrl.common.files import atomic_write
from qrl.envs.pictures import save_figure

FOLDER = Path(__file__).parent / "objectives"
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


def parts(family: str) -> tuple[str, str]:
    """The learner and the model of a family."""
    learner, _, model = family.rpartition("-")
    return learner, MODELS[model]


def table(groups: Iterable[GroupSummary], value: float) -> list[list[str]]:
    """A row per learner and model, by learner in the order of the study; the best success comes first within one."""
    chosen = [group for group in groups if group.selected and group.complete and group.condition.value == value]
    rows = []
    for group in chosen:
        learner, model = parts(group.family)
        cells = [
            "-" if key not in group.means else f"{group.means[key]:.{digits}f}" for key, (_, digits) in METRICS.items()
        ]
        rows.append([learner, model, group.configuration.removeprefix("lr="), *cells])
    return [["learner", "model", "rate", *(title for title, _ in METRICS.values())], *rows]


def write_table(rows: list[list[str]], path: Path) -> None:
    with atomic_write(path) as file:
        file.write("".join(",".join(row) + "\n" for row in rows).encode())


def draw_curves(rows: list[dict[str, str]], path: Path) -> None:
    """A panel per model and number of trajectories: success against the seconds of the training steps."""
    values = sorted({float(row["value"]) for row in rows})
    learners = list(dict.fromkeys(parts(row["family"])[0] for row in rows))
    figure = Figure(figsize=(13, 3.6 * len(values) + 0.8), layout="constrained")
    axes = figure.subplots(len(values), len(MODELS), sharex=True, sharey=True, squeeze=False)
    for line, value in zip(axes, values, strict=True):
        for ax, model in zip(line, MODELS.values(), strict=True):
            for number, learner in enumerate(learners):
                curve = [
                    row for row in rows if parts(row["family"]) == (learner, model) and float(row["value"]) == value
                ]
                steps = sorted({int(row["step"]) for row in curve})
                at = [[row for row in curve if int(row["step"]) == step] for step in steps]
                seconds, success = (
                    [np.mean([float(row[key]) for row in same]) for same in at] for key in ("seconds", "success_rate")
                )
                style = {"color": f"C{number % 10}", "marker": "osD^vPX*<>"[number % 10]}
                ax.plot(seconds, success, ms=5, label=learner, **style)
            ax.set_title(f"{model}, {value:,g} trajectories", fontsize=10)
            ax.set_xscale("log")
            ax.set_ylim(0, 1.02)
            ax.grid(alpha=0.3)
        line[0].set_ylabel("success rate")
    for ax in axes[-1]:
        ax.set_xlabel("seconds of training steps, one core")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(learners), frameon=False)
    save_figure(figure, path)


def main() -> None:
    folder = StudyFolder(FOLDER)
    study = folder.read_study()
    groups = Findings(study, matched(study, read_rows(folder.results))).summaries()
    for value in study.settings.values:
        write_table(table(groups, value), FOLDER / f"learners-{value:g}.csv")
    draw_curves(list(read_curves(folder.curves)), FOLDER / "curves.png")


if __name__ == "__main__":
    main()
