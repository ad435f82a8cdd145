"""Learning curves: what runs scored while they were trained."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.seeds import SeedGroup
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.envs.pictures import save_figure

_STYLES = ("-", "--", ":", "-.")


def learning_curves(agents: Sequence[TrainedAgent], groups: Sequence[SeedGroup], path: str | Path) -> bool:
    """Draw the loss and every metric scored during training, a line per run; False if no run has logged anything.

    Runs of a group, which differ only by seed, share a colour.
    """
    titles = {"loss": "loss"} | {str(metric.column): metric.title.strip() for metric in METRICS if metric.in_training}
    curves = {column: [_curve(trained, column) for trained in agents] for column in titles}
    drawn = [column for column, lines in curves.items() if any(lines)]
    if not drawn:
        return False
    columns = min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = Figure(figsize=(4.4 * columns, 3.4 * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    color = {member: f"C{number % 10}" for number, group in enumerate(groups) for member in group.members}
    style = {member: _STYLES[place % 4] for group in groups for place, member in enumerate(group.members)}
    for ax, column in zip(axes, drawn, strict=False):
        for member, (trained, line) in enumerate(zip(agents, curves[column], strict=True)):
            look: dict[str, Any] = {"color": color[member], "ls": style[member], "lw": 1.6}
            steps, values = [step for step, _ in line], [value for _, value in line]
            ax.plot(steps, values, label=trained.name, marker="." if len(line) <= 15 else "", **look)
        ax.set_title(titles[column])
        ax.set_xlabel("training steps")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.grid(alpha=0.3)
        if column in ("loss", "validation_loss") and all(value > 0 for line in curves[column] for _, value in line):
            ax.set_yscale("log")
    for ax in axes[len(drawn) :]:
        ax.remove()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    save_figure(figure, path)
    return True


def _curve(trained: TrainedAgent, column: str) -> list[tuple[int, float]]:
    """(step, value) of every row that has a finite value."""
    metrics = trained.run.metrics
    if not metrics.path.exists():
        return []
    return [(int(row["step"]), float(row[column])) for row in metrics.evaluations(column)]
