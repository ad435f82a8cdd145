"""Pictures of an evaluation, and among them its maps: learned and exact distances with greedy arrows."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from qrl.agents.evaluation.evaluator import Evaluator, Subject
from qrl.agents.evaluation.plots import estimates_picture, success_picture
from qrl.agents.evaluation.results import PICTURES, VALIDATION_PICTURES, Evaluation
from qrl.agents.evaluation.single_task import GridCell, goal_state
from qrl.agents.evaluation.validation_pictures import hindsight_picture, lengths_picture
from qrl.agents.planning.planner import GreedyPolicy, Ids, TablePolicy, distances_between
from qrl.agents.planning.references import oracle_steps
from qrl.common.figures import (
    clipping,
    figure_files,
    save_figure,
)
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.layout import MOVES
from qrl.envs.pictures import draw_map

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
    """Draw all pictures that an evaluation has, in every format, and return the files; `goal`: of the distance map."""
    distance_map, estimates, success = (folder / name for name in PICTURES)
    paths: list[Path] = []
    truth = evaluator.truth
    if truth is not None and subject.steps is not None:
        if truth.world.cells is not None:
            paths.append(distance_map)
            distance_maps(subject, truth, goal_state(evaluator, goal), distance_map)
        paths.append(estimates)
        estimates_picture(subject, truth, evaluator.experience, estimates)
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
    return [file for path in paths for file in figure_files(path)]


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
    longest = float(exact[finite].max())
    scale: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": longest}
    difference = np.where(finite & np.isfinite(learned), learned - shown, np.nan)
    extreme = max(1.0, float(np.nanmax(np.abs(difference))))
    optimal = TablePolicy.greedy(oracle_steps(truth), truth.world.observations, seed=0)
    figure = Figure(figsize=(13.5, 5.1), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    estimated = np.where(np.isfinite(learned), learned, np.nan)
    drawn = draw_map(left, truth.world, estimated, **scale)
    lost = _draw_policy(
        left, truth, subject.policy.choose(states, np.full(len(states), goal)), goal, np.ones(len(exact), bool)
    )
    reached = f"{int((finite & elsewhere & ~lost).sum())} of {int((finite & elsewhere).sum())} states reach the goal"
    source = "Learned" if subject.agent is not None else "Estimated"
    left.set_title(f"{source}: {reached}" + ("" if np.isfinite(learned).all() else " (white: no estimate)"))
    clipped = clipping(estimated, 0, longest, "states")
    label = "steps to the goal" + (f" ({clipped.note})" if clipped.note else "")
    figure.colorbar(drawn, ax=left, shrink=0.75, label=label, extend=clipped.extend)
    drawn = draw_map(middle, truth.world, shown, **scale)
    _draw_policy(middle, truth, optimal.table[:, goal], goal, finite)
    middle.set_title("Exact" + ("" if finite.all() else " (white: unreachable)"))
    figure.colorbar(drawn, ax=middle, shrink=0.75, label="steps to the goal")
    drawn = draw_map(right, truth.world, difference, cmap="RdBu_r", vmin=-extreme, vmax=extreme)
    _draw_goal(right, truth, goal)
    right.set_title(f"{source} - exact (mean {np.nanmean(difference):+.1f} steps)")
    figure.colorbar(drawn, ax=right, shrink=0.75, label="steps too many (red) or too few (blue)")
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
        entry(r"$\rightarrow$", _LOST, "greedy action that never does", 13),
        entry(r"$\Rightarrow$", _LOST, "greedy action inside a loop", 15),
        entry("X", _LOST, "greedy action blocked by a wall or door"),
        entry(r"$\rightarrow$", "black", "one-way door, not passable against its arrow", 13),
    ]
