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
from qrl.common.plugins import load_plugin
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.pictures import draw_map

FOLDER = Path(__file__).parent / "training"
DEFAULT, RECIPE, VARIANTS = FOLDER / "default", FOLDER / "recipe", FOLDER / "variants"
MODELS = {  # by the names of families
    "mrn": "mrn-fixed",
    "iqe": "iqe-maxmean",
    "deep": "deep-norm-fixed",
    "free": "unconstrained-dist",
}
CHANGES = {  # by what follows the model in the names of families: a label for the figure, and a row of the table
    "": ("recipe", "the recipe"),
    "even": ("equal weights", "too short and too long distances weigh the same (`expectile=0.5`)"),
    "linear": ("linear from 1", "Huber loss linear from one step on (`huber_delta=1`)"),
    "mse": ("mse", "squared error of D, which turns the conservative term off (`loss=mse`)"),
    "bold": ("not conservative", "no conservative term (`conservative=0`)"),
    "unbounded": ("no bounds", "no bounds (`bound=none`)"),
    "trajectory": ("trajectory bounds", "bounds from the same trajectory (`bound=trajectory`)"),
    "unbalanced": ("unbalanced", "batches as collected (`goals.balanced=0`)"),
    "raw": ("no features", "no features (`fourier=0`)"),
    "slow": ("rate 1e-3", "learning rate 1e-3"),
    "plain": (
        "paper's loss",
        "the paper's loss: squared error of D, no bounds, features, balance or conservative term",
    ),
    "features": ("paper + features", "the paper's loss with features"),
    "unbounded-mse": ("mse, no bounds", "squared error of D, no bounds"),
    "width": ("width 512", "width 512"),
    "depth": ("four layers", "four hidden layers"),
    "batch": ("batch 2,048", "batch size 2,048, half the steps"),
    "target": ("slower target", "slower target network (`polyak=0.98`)"),
    "warm": ("warm-up 150", "learning rate that rises over the first 150 steps"),
    "warmer": ("warm-up 500", "learning rate that rises over the first 500 steps"),
    "averaged": ("averaged weights", "weights averaged over about the last 100 steps"),
}
OBJECTIVES = {  # drawn in the model's colour: width and style of the line, and its label in the legend
    "": (2.4, "-", "the recipe"),
    "plain": (1.6, "--", "the paper's loss"),
    "features": (1.6, "-.", "the paper's loss with features"),
}
MAPPED = {  # families of the runs on the map
    "mrn-plain": "the paper's loss",
    "mrn-raw": "the recipe without features",
    "mrn": "the recipe",
    "mrn-fixed": "the default",
}
NAMED = 0.05  # how far a change moves the success for its line to have a name
Table = list[list[str]]


def _family(model: str, change: str) -> str:
    return "-".join(filter(None, (model, change)))


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
    for change, (_, title) in CHANGES.items():
        cells = []
        for model in MODELS:
            members = [row for row in rows if row.family == _family(model, change)]
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
        lines = {change: _line([row for row in curves if row["family"] == _family(name, change)]) for change in CHANGES}
        for change, line in lines.items():
            if not line:
                continue
            named = change in OBJECTIVES or abs(line[-1][1] - lines[""][-1][1]) >= NAMED
            color = styles[model].color if change in OBJECTIVES else "0.55" if named else "0.8"
            width, dashes, _ = OBJECTIVES.get(change, (1, "-", ""))
            ax.plot(*zip(*line, strict=True), color=color, lw=width, ls=dashes, zorder=3 if width > 1 else 2)
            if named:
                _name(ax, line[-1], CHANGES[change][0], color)
        ax.set_title(model, fontsize=10)
        tidy(ax)
    for ax in axes[2:]:
        ax.set_xlabel("processor time of training, seconds", fontsize=9)
    for ax in axes[::2]:
        ax.set_ylabel("success rate", fontsize=9)
    axes[0].set_ylim(*FRACTION_LIMITS)
    plain_log_axis(axes[0], "x", [float(row["seconds"]) for row in curves])
    handles = [
        *(Line2D([], [], color="0.2", lw=width, ls=dashes, label=text) for width, dashes, text in OBJECTIVES.values()),
        Line2D([], [], color="0.55", lw=1, label=f"one change that moves the success by {NAMED} or more"),
        Line2D([], [], color="0.8", lw=1, label="the other changes"),
    ]
    seeds = len({row["seed"] for row in curves})
    note = f"Means over {seeds} seeds, 300 trajectories." if seeds > 1 else "A single seed, 300 trajectories."
    figure.legend(
        handles=handles, title=note, loc="outside lower center", ncols=3, fontsize=8, title_fontsize=9, frameon=False
    )
    figure.suptitle("Success while training: the recipe and what its parts are worth")
    spread_labels(figure)
    save_figure(figure, path)


def _line(rows: Sequence[Curve]) -> list[tuple[float, float]]:
    """Mean processor time and success at each evaluation."""
    steps = sorted({int(row["step"]) for row in rows})
    by_step = [[row for row in rows if int(row["step"]) == step] for step in steps]
    means = (
        [float(np.mean([float(row[key]) for row in group])) for key in ("seconds", "success_rate")] for group in by_step
    )
    return [(seconds, success) for seconds, success in means]


def _name(ax: Axes, end: tuple[float, float], name: str, color: str) -> None:
    """A label at the right edge, and a dotted line that leads there."""
    seconds, success = end
    ax.plot([seconds, 1e9], [success, success], color=color, lw=0.7, ls=":")  # cut off by the axes
    label_end(ax, success, name, color, fontsize=7)


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
        title = MAPPED.get(run.name.partition("__")[0], run.name)
        trajectories = f"{run.dataset.num_episodes:,} trajectories"
        ax.set_title(f"{title}, {trajectories}:\n{success:.3f} of the tasks solved", fontsize=10)
    figure.colorbar(drawn, ax=list(axes), shrink=0.75, label="walks that end here without reaching their goal")
    save_figure(figure, path)


def main(runs: Sequence[str]) -> None:
    load_plugin("docs.training_variants")
    write_csv(FOLDER / "default.csv", default_table(rows_of(DEFAULT)))
    variants = [row for row in rows_of(VARIANTS) if row.family not in MODELS]  # without a second baseline
    write_csv(FOLDER / "recipe.csv", recipe_table(rows_of(RECIPE) + variants))
    draw_curves(read_curves(RECIPE / "curves.csv"), FOLDER / "curves")
    if runs:
        draw_stuck([Run.open(run) for run in runs], FOLDER / "stuck")


if __name__ == "__main__":
    main(sys.argv[1:])
