"""What the plots show; how they look was judged by eye."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from qrl.agents.evaluation import plots
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.results import DistanceRow, Results
from qrl.agents.evaluation.statistics import wilson_interval
from qrl.common.figures import FRACTION_LIMITS, end_labels
from tests.agents.worlds import corridor


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    figures: list[Figure] = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: figures.append(figure))
    return figures


def test_success_by_distance_is_drawn_as_it_is(saved: list[Figure]) -> None:
    evaluator = Evaluator(corridor(10, "traps"))
    results = [evaluator.score(evaluator.reference(name)) for name in ("oracle", "random")]
    plots.success_picture(results, "unused.png")
    (ax,) = saved[0].axes
    assert ax.get_ylim() == FRACTION_LIMITS
    for line, result in zip(ax.lines, results, strict=False):
        assert np.asarray(line.get_ydata()).tolist() == [row["success_rate"] for row in result.success_by_distance]
    assert [text.get_text() for text in end_labels(ax)] == [f"{one.name} ({one.success_rate:.3f})" for one in results]


def test_the_intervals_of_agents(saved: list[Figure]) -> None:
    rows: list[DistanceRow] = [
        {"low": 0, "high": 4, "success_rate": 0.5, "tasks": 10},
        {"low": 5, "high": 9, "success_rate": 1.0, "tasks": 20},
    ]
    plots.success_picture([Results("mine", "exhaustive", 300, 0, {"success_rate": 0.8}, None, rows)], "unused.png")
    (bars,) = saved[0].axes[0].containers
    (segments,) = bars[2]
    ends = [path.vertices[:, 1] for path in segments.get_paths()]
    np.testing.assert_allclose(ends, [wilson_interval(5, 10), wilson_interval(20, 20)])


@pytest.mark.parametrize(("factor", "clips"), [(1.0, False), (4.0, True), (-4.0, True)])
def test_estimates_have_equal_axes_that_say_when_they_clip(factor: float, clips: bool, saved: list[Figure]) -> None:
    evaluator = Evaluator(corridor(10, "traps"))
    subject = evaluator.reference("oracle")
    assert subject.steps is not None
    assert evaluator.truth is not None
    plots.estimates_picture(
        replace(subject, steps=factor * subject.steps), evaluator.truth, evaluator.dataset, "unused.png"
    )
    for ax in saved[0].axes[:2]:
        assert ax.get_aspect() == 1
        assert ax.get_xlim() == ax.get_ylim()
    assert any("drawn at the edge" in ax.get_title() for ax in saved[0].axes[:2]) == clips
