"""Learning curves: what runs scored while they were trained."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from qrl.agents.evaluation.metric import Metric
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.seeds import SeedGroup
from qrl.agents.evaluation.style import group_looks
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.common.figures import FRACTION_LIMITS, grid_shape, panel_grid, plain_log_axis, save_figure, tidy

Curve = list[tuple[int, float]]  # (step, value)


def learning_curves(agents: Sequence[TrainedAgent], groups: Sequence[SeedGroup], path: str | Path) -> bool:
    """Draw the loss and every metric scored during training, a line per run; False if no run has logged anything.

    Runs of a group, which differ only by seed, share a colour.
    """
    metrics = {str(metric.column): metric for metric in METRICS if metric.in_training}
    curves = {column: [_curve(trained, column) for trained in agents] for column in ("loss", *metrics)}
    drawn = [column for column, lines in curves.items() if any(lines)]
    if not drawn:
        return False
    rows, columns = grid_shape(len(drawn))
    figure = Figure(figsize=(max(6.5, 3.6 * columns), 2.9 * rows + 0.6), layout="constrained")
    axes = panel_grid(figure, rows, columns, len(drawn))
    looks = group_looks(groups)
    for ax, column in zip(axes, drawn, strict=True):
        for member, (trained, line) in enumerate(zip(agents, curves[column], strict=True)):
            style = looks[member].style | {"marker": looks[member].marker if len(line) <= 15 else "", "ms": 4}
            ax.plot([step for step, _ in line], [value for _, value in line], label=trained.name, **style)
        _scale(ax, metrics.get(column), [value for line in curves[column] for _, value in line])
        ax.set_title(metrics[column].title.strip() if column in metrics else column, fontsize=10)
        ax.set_xlabel("training steps")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.tick_params(labelsize=8)
        tidy(ax)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    save_figure(figure, path)
    return True


def _scale(ax: Axes, metric: Metric | None, values: Sequence[float]) -> None:
    """Fractions are shown from 0 to 1 and errors from 0, so that no axis is cut off; losses have a logarithmic one."""
    low, high = min(values), max(values)
    if metric is None:
        if low > 0:
            plain_log_axis(ax, "y", values)
    elif metric.higher_is_better and low >= 0 and high <= 1:
        ax.set_ylim(*FRACTION_LIMITS)
    elif metric.higher_is_better is False and low >= 0:
        ax.set_ylim(0, 1.05 * high or 1)
    else:
        ax.axhline(0, color="0.4", lw=0.8)


def _curve(trained: TrainedAgent, column: str) -> Curve:
    """Every row that has a finite value."""
    metrics = trained.run.metrics
    if not metrics.path.exists():
        return []
    return [(int(row["step"]), float(row[column])) for row in metrics.evaluations(column)]
