"""Runs that differ only by seed, and their curves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from qrl.agents.evaluation import curves
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.results import Results
from qrl.agents.evaluation.seeds import seed_groups, seed_rows
from qrl.agents.evaluation.trained_agent import TrainedAgent, open_agents
from qrl.agents.runs.run import Run
from tests.agents.worlds import corridor, small_settings


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> list[TrainedAgent]:
    """Two runs that differ by seed, and one with another learning rate, which has not been trained."""
    folder = tmp_path_factory.mktemp("seeds")
    corridor().save(folder / "data.npz")
    for name, seed, lr in (("a", 0, 1e-3), ("other", 0, 1e-2), ("b", 1, 1e-3)):
        settings = small_settings(folder / name, dataset=str(folder / "data.npz"), seed=seed, learner={"lr": lr})
        run = Run.start(settings)
        if name != "other":
            for _ in run.train():
                pass
    return open_agents([folder / name for name in ("a", "other", "b")])


def test_groups(agents: list[TrainedAgent]) -> None:
    groups = seed_groups(agents)
    assert [group.members for group in groups] == [[0, 2], [1]]
    assert [group.name for group in groups] == ["iqe-maxmean by mbold (2 seeds: a, b)", "other"]


def test_means_over_seeds(agents: list[TrainedAgent]) -> None:
    def scored(name: str, rate: float, **values: Any) -> Results:
        known = {"success_rate": rate, **values}
        return Results(name, "exhaustive", 300, 0, {metric.key: known.get(metric.key) for metric in METRICS})

    results = [scored("a", 0.5, spl=0.5), scored("other", 1.0), scored("b", 0.75)]
    rows = {metric.key: values for metric, values in seed_rows(seed_groups(agents), results)}
    deviation = np.std([0.5, 0.75], ddof=1)
    assert rows == {"success_rate": [f"0.625 ± {deviation:.3f}", "1.000"]}  # a mean of SPL would be that of one seed


def test_learning_curves(agents: list[TrainedAgent], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saved: list[Figure] = []
    monkeypatch.setattr(curves, "save_figure", lambda figure, path: saved.append(figure))
    assert curves.learning_curves(agents, seed_groups(agents), tmp_path / "curves.png")
    loss, success, *_ = saved[0].axes
    first, untrained, second = loss.lines
    assert first.get_color() == second.get_color() != untrained.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    steps, rates = map(np.asarray, success.lines[0].get_data())
    rows = agents[0].run.metrics.evaluations("success_rate")
    assert steps.tolist() == [int(row["step"]) for row in rows] == [10, 20]
    assert rates.tolist() == [float(row["success_rate"]) for row in rows]
    assert len(np.asarray(untrained.get_xdata())) == 0
    assert not curves.learning_curves(agents[1:2], seed_groups(agents[1:2]), tmp_path / "none.png")
