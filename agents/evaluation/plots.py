"""Plots of an evaluation: estimates against exact steps, and success by distance."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from qrl.agents.evaluation.evaluator import Subject
from qrl.agents.evaluation.measurements import reachable_goals, seen_goals
from qrl.agents.evaluation.results import REFERENCES, DistanceRow, Results
from qrl.agents.evaluation.statistics import wilson_interval
from qrl.agents.evaluation.style import COLORS, REFERENCE_STYLES, Look, look
from qrl.agents.planning.references import oracle_steps
from qrl.common.figures import FRACTION_LIMITS, clipping, label_end, save_figure, spread_labels, tidy
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth

Limits = tuple[float, float]


def estimates_picture(subject: Subject, truth: GroundTruth, experience: Dataset | None, path: str | Path) -> None:
    """Estimated against exact steps to the goal, for pairs seen and unseen in the data; without it, all are unseen."""
    assert subject.steps is not None
    exact = oracle_steps(truth)
    reachable = reachable_goals(exact)
    seen = np.zeros_like(reachable) if experience is None else seen_goals(experience)
    longest = float(exact[reachable].max())
    limits = -1.0, math.ceil(1.15 * longest)
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    norm = LogNorm(1, max(2, _densest(exact[reachable], subject.steps[reachable], limits)))  # one scale for both
    for ax, chosen, title in zip(axes, (reachable & seen, reachable & ~seen), ("seen", "unseen"), strict=True):
        _draw_density(ax, exact[chosen], subject.steps[chosen], limits, norm)
        ax.plot([0, longest], [0, longest], color="black", lw=1, label="exact")
        clipped = clipping(subject.steps[chosen], *limits, "estimates").note
        ax.set_title(
            f"{chosen.sum():,} pairs {title} within a trajectory of the data"
            + (f"\n{clipped}, drawn at the edge" if clipped else ""),
            fontsize=10,
        )
        ax.set(xlabel="exact steps to the goal", xlim=limits, ylim=limits, aspect="equal")
    figure.colorbar(ScalarMappable(norm, "Blues"), ax=axes, label="pairs", shrink=0.85)
    axes[0].set_ylabel("estimated steps to the goal")
    axes[0].legend(loc="upper left")
    figure.suptitle(f"{subject.name}: estimated against exact steps, for every state, action and goal")
    save_figure(figure, path)


def _bins(limits: Limits) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of exact and of estimated steps: whole and half ones."""
    return np.arange(limits[0] - 0.5, limits[1] + 1), np.arange(limits[0], limits[1] + 0.5, 0.5)


def _densest(exact: NDArray[np.float32], estimate: NDArray[np.float32], limits: Limits) -> float:
    counts, *_ = np.histogram2d(np.rint(exact), np.clip(estimate, *limits), bins=_bins(limits))
    return float(counts.max())


def _draw_density(
    ax: Axes, exact: NDArray[np.float32], estimate: NDArray[np.float32], limits: Limits, norm: LogNorm
) -> None:
    if not len(exact):
        return
    estimate = np.clip(estimate, *limits)
    rounded = np.rint(exact)  # no change where distances are numbers of steps
    *_, image = ax.hist2d(rounded, estimate, bins=_bins(limits), norm=norm, cmap="Blues")
    image.set_rasterized(True)  # thousands of cells would make vector files large
    values = np.unique(rounded)
    quantiles = [np.quantile(estimate[rounded == value], (0.1, 0.5, 0.9)) for value in values]
    low, middle, high = np.transpose(quantiles)
    ax.plot(values, middle, color=COLORS[1], lw=2, label="median")
    ax.plot(values, low, color=COLORS[1], lw=1, ls=":", label="10 % and 90 % quantiles")
    ax.plot(values, high, color=COLORS[1], lw=1, ls=":")


def success_picture(results: Sequence[Results], path: str | Path, looks: Sequence[Look] = ()) -> None:
    """Success rate by the exact distance of the tasks, a line per planner; `looks`: of the planners, in their order."""
    figure = Figure(figsize=(9.5, 5), layout="constrained")
    ax = figure.subplots()
    styles = iter(looks or [look(number) for number in range(len(results))])
    for result in results:
        rows = result.success_by_distance
        x, rates = [_middle(row) for row in rows], [row["success_rate"] or 0 for row in rows]
        if result.name in REFERENCES:
            style = REFERENCE_STYLES[result.name]
        else:
            style = next(styles).style
            ends = [_interval(row) for row in rows]
            reach = np.abs(np.transpose(ends) - rates)
            ax.errorbar(x, rates, reach, fmt="none", ecolor=style["color"], capsize=3)
        ax.plot(x, rates, **style)
        label_end(ax, rates[-1], f"{result.name} ({result.success_rate:.3f})", style["color"], fontsize=9)
    longest = max(results, key=lambda result: len(result.success_by_distance)).success_by_distance
    ax.set_xticks(
        [_middle(row) for row in longest],
        [f"{row['low']}-{row['high']}\n({row['tasks']:,})" for row in longest],
    )
    ax.set_ylim(*FRACTION_LIMITS)
    ax.set_xlabel("exact distance from start to goal (number of tasks)")
    ax.set_ylabel("success rate (in brackets: over all tasks)")
    ax.set_title("Success rate by exact distance, with 95 % Wilson intervals", fontsize=10)
    tidy(ax)
    spread_labels(figure)
    save_figure(figure, path)


def _interval(row: DistanceRow) -> tuple[float, float]:
    rate, tasks = row["success_rate"], row["tasks"]
    assert rate is not None
    assert tasks is not None
    return wilson_interval(rate * tasks, tasks)


def _middle(row: DistanceRow) -> float:
    low, high = row["low"], row["high"]
    assert low is not None
    assert high is not None
    return (low + high) / 2
