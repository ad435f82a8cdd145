"""Pictures of an evaluation: distance maps with greedy arrows, estimates against exact steps, success by distance."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from qrl.agents.evaluation.evaluator import Evaluator, GridCell, Subject
from qrl.agents.evaluation.measurements import reachable_goals, seen_goals
from qrl.agents.evaluation.results import (
    PICTURES,
    REFERENCES,
    VALIDATION_PICTURES,
    DistanceRow,
    Evaluation,
    Results,
)
from qrl.agents.evaluation.validation_pictures import hindsight_picture, lengths_picture
from qrl.agents.planning.planner import GreedyPolicy, Ids, TablePolicy, distances_between
from qrl.agents.planning.references import oracle_steps
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.layout import MOVES
from qrl.envs.pictures import draw_map, save_figure

_LOST = "#e6002e"
_ARROW: dict[str, Any] = {
    "angles": "xy",
    "scale_units": "xy",
    "scale": 1,
    "units": "xy",
    "pivot": "middle",
    "zorder": 3,
}


def evaluation_pictures(
    evaluator: Evaluator, subject: Subject, evaluation: Evaluation, folder: Path, goal: GridCell | None = None
) -> list[Path]:
    """All pictures that can be drawn of an evaluation; `goal` is that of the distance map."""
    distance_map, estimates, success = (folder / name for name in PICTURES)
    paths = []
    truth = evaluator.truth
    if truth is not None and subject.steps is not None:
        if truth.world.cells is not None:
            paths.append(distance_map)
            distance_maps(subject, truth, evaluator.goal_state(goal), distance_map)
        paths.append(estimates)
        estimates_picture(subject, truth, evaluator.dataset, estimates)
    if evaluation.results.success_by_distance:
        paths.append(success)
        success_picture([evaluation.results, *evaluation.references], success)
    if truth is None and subject.validation is not None:
        hindsight, lengths = (folder / name for name in VALIDATION_PICTURES)
        if subject.validation.hindsight is not None:
            paths.append(hindsight)
            hindsight_picture(subject.validation.hindsight, subject.name, hindsight)
        paths.append(lengths)
        lengths_picture(evaluator.dataset.lengths, subject.validation.lengths, lengths)
    return paths


def distance_maps(subject: Subject, truth: GroundTruth, goal: int, path: str | Path) -> None:
    """Learned and exact distance from every state to a goal and their difference, with the greedy actions."""
    assert subject.steps is not None
    assert isinstance(subject.policy, GreedyPolicy)
    states = np.arange(len(truth.distances))
    elsewhere = states != goal
    learned = distances_between(subject.steps)[:, goal]
    exact = truth.distances[:, goal]
    finite = np.isfinite(exact)
    shown = np.where(finite, exact, np.nan)
    scale: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": exact[finite].max()}
    difference = np.where(finite & np.isfinite(learned), learned - shown, np.nan)
    extreme = max(1.0, float(np.nanmax(np.abs(difference))))
    optimal = TablePolicy.greedy(oracle_steps(truth), truth.world.observations, seed=0)
    figure = Figure(figsize=(13.5, 5.1), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    drawn = draw_map(left, truth.world, np.where(np.isfinite(learned), learned, np.nan), **scale)
    lost = _draw_policy(
        left, truth, subject.policy.choose(states, np.full(len(states), goal)), goal, np.ones(len(exact), bool)
    )
    reached = f"{int((finite & elsewhere & ~lost).sum())} of {int((finite & elsewhere).sum())} states reach the goal"
    source = "learned" if subject.agent is not None else "estimated"
    left.set_title(f"{source}: {reached}")
    figure.colorbar(drawn, ax=left, shrink=0.75, label="steps to the goal")
    drawn = draw_map(middle, truth.world, shown, **scale)
    _draw_policy(middle, truth, optimal.table[:, goal], goal, finite)
    middle.set_title("exact" + ("" if finite.all() else " (white: unreachable)"))
    figure.colorbar(drawn, ax=middle, shrink=0.75, label="steps to the goal")
    drawn = draw_map(right, truth.world, difference, cmap="RdBu_r", vmin=-extreme, vmax=extreme)
    _draw_goal(right, truth, goal)
    right.set_title(f"{source} - exact (mean {np.nanmean(difference):+.1f} steps)")
    figure.colorbar(drawn, ax=right, shrink=0.75, label="red: overestimated, blue: underestimated")
    x, y = truth.world.cells[goal]
    figure.suptitle(f"{subject.name}: distance to the goal (star) at column {x}, row {y} of {truth.world.name}")
    if _has_arrows(truth):
        figure.legend(handles=_legend(), loc="outside lower center", ncols=3, frameon=False)
    save_figure(figure, path)


def _has_arrows(truth: GroundTruth) -> bool:
    """Whether an action is a move to a cell."""
    return truth.world.layout is not None and truth.world.deterministic


def _draw_policy(ax: Axes, truth: GroundTruth, actions: Ids, goal: int, drawn: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Draw an action for every state, if it is a move; returns the states from which the goal is never reached."""
    lost = ~truth.reaching(actions, goal)
    _draw_goal(ax, truth, goal)
    if not _has_arrows(truth):
        return lost
    layout = truth.layout
    states = np.arange(len(actions))
    following = truth.transitions[states, actions]
    following[goal] = goal
    end = states
    for _ in states:  # long enough to be in a loop, or at the goal
        end = following[end]
    loops = np.isin(states, end[lost])
    x, y = layout.cells.T
    move = MOVES[actions] * 0.62
    # The arrow of the door itself already shows where it leads.
    through_door = actions == layout.headings
    moving = drawn & (states != goal) & (following != states) & ~(through_door & ~lost)
    for chosen, color, width in (
        (moving & ~lost, "white", 0.09),
        (moving & lost & ~loops, _LOST, 0.09),
        (moving & loops, _LOST, 0.18),
    ):
        head: dict[str, Any] = {"headwidth": 0.36 / width, "headlength": 0.4 / width, "headaxislength": 0.36 / width}
        ax.quiver(
            x[chosen], y[chosen], move[chosen, 0], move[chosen, 1],
            color=color, width=width, edgecolor="black", linewidth=0.35, **head, **_ARROW,
        )  # fmt: skip
    stopped = drawn & (states != goal) & (following == states)
    side = move[stopped] * 0.6
    ax.plot(x[stopped] + side[:, 0], y[stopped] + side[:, 1], "X", color=_LOST, ms=6, mec="black", mew=0.4, zorder=3)
    return lost


def _draw_goal(ax: Axes, truth: GroundTruth, goal: int) -> None:
    ax.plot(*truth.world.cells[goal], "*", color="gold", ms=17, mec="black", mew=1, zorder=4)


def _legend() -> list[Line2D]:
    def entry(marker: str, color: str, label: str, size: float = 9) -> Line2D:
        return Line2D([], [], ls="", marker=marker, color=color, mec="black", mew=0.5, ms=size, label=label)

    return [
        entry(r"$\rightarrow$", "white", "greedy action that leads to the goal", 13),
        entry(r"$\rightarrow$", _LOST, "one that never does", 13),
        entry(r"$\Rightarrow$", _LOST, "inside a loop", 15),
        entry("X", _LOST, "move blocked by a wall or door"),
        entry(r"$\rightarrow$", "black", "one-way door: never passable against its arrow", 13),
    ]


def estimates_picture(subject: Subject, truth: GroundTruth, dataset: Dataset, path: str | Path) -> None:
    """Estimated against exact steps to the goal, for pairs seen and unseen in the data."""
    assert subject.steps is not None
    exact = oracle_steps(truth)
    reachable = reachable_goals(exact)
    seen = np.zeros_like(reachable) if dataset.noisy else seen_goals(dataset)
    top = 1.25 * float(exact[reachable].max())
    figure = Figure(figsize=(12, 5.4), layout="constrained")
    for ax, chosen, title in zip(
        figure.subplots(1, 2, sharey=True), (reachable & seen, reachable & ~seen), ("seen", "unseen"), strict=True
    ):
        _draw_density(ax, exact[chosen], subject.steps[chosen], top)
        ax.set_title(f"{chosen.sum():,} pairs {title} within a trajectory of the data")
        ax.set_xlabel("exact steps to the goal")
    figure.axes[0].set_ylabel("estimated steps to the goal")
    figure.axes[0].legend(loc="upper left")
    figure.suptitle(f"{subject.name}: estimates against exact steps, for every state, action and goal")
    save_figure(figure, path)


def _draw_density(ax: Axes, exact: NDArray[np.float32], estimate: NDArray[np.float32], top: float) -> None:
    longest = math.ceil(exact.max()) if len(exact) else 1
    bins = (np.arange(longest + 2) - 0.5, np.linspace(-1, top, 120))
    estimate = np.clip(estimate, -1, top)  # beyond the picture: drawn on its edge
    if len(exact):
        *_, image = ax.hist2d(exact, estimate, bins=bins, norm=LogNorm(), cmap="Blues")
        ax.figure.colorbar(image, ax=ax, label="pairs")
        rounded = np.rint(exact)  # no change where distances are numbers of steps
        values = np.unique(rounded)
        quantiles = [np.quantile(estimate[rounded == value], (0.1, 0.5, 0.9)) for value in values]
        low, middle, high = np.transpose(quantiles)
        ax.plot(values, middle, color="#d95f02", lw=2, label="median")
        ax.plot(values, low, color="#d95f02", lw=1, ls=":", label="10 % and 90 %")
        ax.plot(values, high, color="#d95f02", lw=1, ls=":")
    ax.plot([0, longest], [0, longest], color="black", lw=1, label="exact")
    ax.set_ylim(-1, top)


def success_picture(results: Sequence[Results], path: str | Path) -> None:
    """Success rate by the exact distance of the tasks, a line per planner."""
    figure = Figure(figsize=(9.5, 5), layout="constrained")
    ax = figure.subplots()
    for result in results:
        rows = result.success_by_distance
        style: dict[str, Any] = {"lw": 2.2, "marker": "o"}
        if result.name in REFERENCES:
            style = REFERENCE_STYLES[result.name]
        label = f"{result.name} ({result.success_rate:.3f})"
        ax.plot([_middle(row) for row in rows], [row["success_rate"] or 0 for row in rows], label=label, **style)
    longest = max(results, key=lambda result: len(result.success_by_distance)).success_by_distance
    ax.set_xticks(
        [_middle(row) for row in longest],
        [f"{row['low']}-{row['high']}\n({row['tasks']:,})" for row in longest],
    )
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("exact distance from start to goal (number of tasks)")
    ax.set_ylabel("success rate (in brackets: over all tasks)")
    ax.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    save_figure(figure, path)


def _middle(row: DistanceRow) -> float:
    low, high = row["low"], row["high"]
    assert low is not None
    assert high is not None
    return (low + high) / 2


# The oracle is thin and on top: other lines often lie below it.
REFERENCE_STYLES: dict[str, dict[str, Any]] = {
    "oracle": {"lw": 1, "ls": ":", "color": "black", "zorder": 5},
    "random": {"lw": 1.4, "ls": "--", "marker": ".", "color": "0.6"},
    "empirical-graph": {"lw": 3, "ls": "--", "color": "#c9a227", "zorder": 1},
}
