"""Tables and pictures of training.md, from the results in docs/training; docs/studies.py puts the tables into the page.

python docs/training.py [RUN ...]: with runs, also the map of where their walks end.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from qrl.agents.evaluation.style import looks
from qrl.agents.planning.planner import TablePolicy, all_steps_to_goal, follow
from qrl.agents.runs.run import Run
from qrl.agents.studies.curves import Curve, read_curves
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.table import RunRow, matched, read_rows
from qrl.common.figures import FRACTION_LIMITS, label_end, panel_grid, plain_log_axis, save_figure, spread_labels, tidy
from qrl.common.files import write_csv
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.pictures import draw_map

FOLDER = Path(__file__).parent / "training"
DEFAULT, RECIPE = FOLDER / "default", FOLDER / "recipe"
MODELS = {  # by the names of families
    "mrn": "mrn-fixed",
    "iqe": "iqe-maxmean",
    "deep": "deep-norm-fixed",
    "free": "unconstrained-dist",
}
CHANGES = {
    "": "the recipe",
    "even": "too short and too long distances weigh the same (`expectile=0.5`)",
    "linear": "Huber loss linear from one step on (`huber_delta=1`)",
    "mse": "squared error of D (`loss=mse`)",
    "bold": "no conservative term (`conservative=0`)",
    "unbounded": "no bounds (`bound=none`)",
    "trajectory": "bounds from the same trajectory (`bound=trajectory`)",
    "unbalanced": "batches as collected (`goals.balanced=0`)",
    "raw": "no features (`fourier=0`)",
    "slow": "learning rate 1e-3",
    "plain": "the paper's loss: squared error of D, no bounds, features, balance or conservative term",
    "width": "width 512",
    "depth": "four hidden layers",
    "batch": "batch size 2,048, half the steps",
    "target": "slower target network (`polyak=0.98`)",
}
Table = list[list[str]]


def rows_of(path: Path) -> list[RunRow]:
    folder = StudyFolder(path)
    return matched(folder.read_study(), read_rows(folder.results))


def text(rows: Sequence[RunRow], metric: str, digits: int = 3) -> str:
    """The mean over seeds, and the lowest and highest of them."""
    values = [value for row in rows if (value := row.scores.get(metric)) is not None]
    if not values:
        return "-"
    spread = f" ({min(values):.{digits}f} to {max(values):.{digits}f})" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def default_table(rows: Sequence[RunRow]) -> Table:
    """The recipe by the size of the data, beside memory."""
    titles = ["trajectories", "tasks", "all pairs", "error in steps", "tasks, memory", "all pairs, memory"]
    table = [[*titles, "processor time, s"]]
    for value in sorted({row.value for row in rows}):
        of_size = [row for row in rows if row.value == value]
        learned = [row for row in of_size if row.purpose == "evaluation"]
        memory = [row for row in of_size if row.family == "empirical-graph"]
        scores = [text(learned, metric) for metric in ("success_rate", "all_pairs_success_rate")]
        scores += [text(learned, "absolute_error", 2)]
        scores += [text(memory, metric) for metric in ("success_rate", "all_pairs_success_rate")]
        seconds = [row.seconds for row in learned if row.seconds is not None]
        table.append([f"{value:,g}", *scores, f"{np.mean(seconds):.0f}" if seconds else "-"])
    return table


def recipe_table(rows: Sequence[RunRow]) -> Table:
    """Success on tasks and from all pairs by what is changed, for each model."""
    columns = {"tasks": "success_rate", "all pairs": "all_pairs_success_rate"}
    table = [["change", *(f"{model}, {title}" for model in MODELS.values() for title in columns)]]
    for change, title in CHANGES.items():
        cells = []
        for model in MODELS:
            members = [row for row in rows if row.family == "-".join(filter(None, (model, change)))]
            for metric in columns.values():
                cells.append(text(members, metric).partition(" ")[0])
        table.append([title, *cells])
    return table


def draw_curves(curves: Sequence[Curve], path: Path) -> None:
    """Success against processor time: a panel per model, a line per change."""
    styles = looks({model: model for model in MODELS.values()})
    figure = Figure(figsize=(9.5, 7.5), layout="constrained")
    axes = panel_grid(figure, 2, 2, len(MODELS), sharex=True, sharey=True)
    for ax, (name, model) in zip(axes, MODELS.items(), strict=True):
        for change in CHANGES:
            family = "-".join(filter(None, (name, change)))
            color = styles[model].color if change in ("", "plain") else "0.6"
            _draw_line(ax, [row for row in curves if row["family"] == family], change, color)
        ax.set_title(model, fontsize=10)
        tidy(ax)
    for ax in axes[2:]:
        ax.set_xlabel("processor time of training, seconds", fontsize=9)
    for ax in axes[::2]:
        ax.set_ylabel("success rate", fontsize=9)
    axes[0].set_ylim(*FRACTION_LIMITS)
    plain_log_axis(axes[0], "x", [float(row["seconds"]) for row in curves])
    handles = [
        Line2D([], [], color="0.2", lw=2.4, label="the recipe"),
        Line2D([], [], color="0.2", lw=1.6, ls="--", label="the paper's loss (plain)"),
        Line2D([], [], color="0.6", lw=1, label="one change, named at its end"),
    ]
    seeds = len({row["seed"] for row in curves})
    note = f"Means over {seeds} seeds, 300 trajectories." if seeds > 1 else "A single seed, 300 trajectories."
    figure.legend(
        handles=handles, title=note, loc="outside lower center", ncols=3, fontsize=8, title_fontsize=9, frameon=False
    )
    figure.suptitle("Success while training: the recipe and what its parts are worth")
    spread_labels(figure)
    save_figure(figure, path)


def _draw_line(ax: Axes, rows: Sequence[Curve], change: str, color: str) -> None:
    steps = sorted({int(row["step"]) for row in rows})
    if not steps:
        return
    by_step = [[row for row in rows if int(row["step"]) == step] for step in steps]
    seconds, rates = (
        [float(np.mean([float(row[key]) for row in group])) for group in by_step] for key in ("seconds", "success_rate")
    )
    width, dashes = {"": (2.4, "-"), "plain": (1.6, "--")}.get(change, (1, "-"))
    ax.plot(seconds, rates, color=color, lw=width, ls=dashes, zorder=3 if width > 1 else 2)
    label_end(ax, rates[-1], change or "recipe", color, fontsize=7)


def stuck(run: Run) -> tuple[GroundTruth, NDArray[np.float64], float]:
    """How many walks end in each state without having reached their goal, over all tasks; and the success rate."""
    learner = run.trainer.learner
    truth = ground_truth(run.dataset.world)
    policy = TablePolicy.greedy(
        all_steps_to_goal(learner.model, learner.observations), truth.world.observations, seed=run.settings.seed
    )
    starts, goals = truth.all_tasks()
    success = follow(policy, truth, starts, goals).success.astype(bool)
    states = starts[~success]
    for _ in range(len(truth.distances)):  # long enough to be stuck, or in a loop
        states = truth.transitions[states, policy.choose(states, goals[~success])]
    return truth, np.bincount(states, minlength=len(truth.distances)).astype(float), float(success.mean())


def draw_stuck(runs: Sequence[Run], path: Path) -> None:
    """A map per run of where its walks end that do not reach their goals."""
    found = [stuck(run) for run in runs]
    figure = Figure(figsize=(4.6 * len(runs), 4.9), layout="constrained")
    most = max(counts.max() for _, counts, _ in found)
    axes = panel_grid(figure, 1, len(runs), len(runs))
    for ax, run, (truth, counts, success) in zip(axes, runs, found, strict=True):
        drawn = draw_map(ax, truth.world, np.where(counts > 0, counts, np.nan), cmap="Reds", vmin=0, vmax=max(most, 1))
        ax.set_title(f"{run.name}\n{success:.3f} of the tasks solved", fontsize=10)
    figure.colorbar(drawn, ax=list(axes), shrink=0.75, label="walks that end here without reaching their goal")
    save_figure(figure, path)


def main(runs: Sequence[str]) -> None:
    write_csv(FOLDER / "default.csv", default_table(rows_of(DEFAULT)))
    write_csv(FOLDER / "recipe.csv", recipe_table(rows_of(RECIPE)))
    draw_curves(read_curves(RECIPE / "curves.csv"), FOLDER / "curves")
    if runs:
        draw_stuck([Run.open(run) for run in runs], FOLDER / "stuck")


if __name__ == "__main__":
    main(sys.argv[1:])
