"""The figures of a study."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from qrl.agents.evaluation.style import look
from qrl.agents.studies.findings import Findings
from qrl.agents.studies.pictures import curves_picture, study_picture
from qrl.common.figures import FRACTION_LIMITS, end_labels
from tests.agents.studies.hand_made import row, rows, study


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that would be saved."""
    figures: list[Figure] = []

    def save(figure: Figure, path: Path) -> list[Path]:
        figures.append(figure)
        return [path]

    monkeypatch.setattr("qrl.agents.studies.pictures.save_figure", save)
    return figures


def draw(findings: Findings) -> None:
    study_picture(findings, findings.summaries(), Path("figure"))


def heights(ax: Axes, color: str, width: float | None = None) -> list[NDArray[Any]]:
    """The points of the lines of a colour, but for those that lead to labels."""
    lines = [line for line in ax.lines if line.get_color() == color and line.get_transform() == ax.transData]
    return [np.asarray(line.get_ydata()) for line in lines if width is None or line.get_linewidth() == width]


def test_several_conditions_are_drawn_as_lines_with_intervals(drawn: list[Figure]) -> None:
    findings = Findings(study(), rows())
    draw(findings)
    (ax,) = drawn[0].axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("trajectories", "success rate")
    assert ax.get_ylim() == FRACTION_LIMITS
    assert [text.get_text() for text in end_labels(ax)] == ["iqe-maxmean", "dot"]
    np.testing.assert_allclose(heights(ax, look(0).color, 1.6), [[0.5, 0.75]])
    dot = look(7).color
    np.testing.assert_allclose(heights(ax, dot, 1.6), [[0.4, 0.65]])
    np.testing.assert_allclose(heights(ax, dot, 0.6), [[1, 1]])  # the configuration that was not selected
    intervals = [group.interval or (0, 0) for group in findings.summaries() if group.family == "iqe-maxmean"]
    bars = ax.containers[0][2][0].get_paths()
    np.testing.assert_allclose([path.vertices[:, 1] for path in bars], intervals)
    names = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert names == ["oracle", "other configurations of the family"]
    assert drawn[0].legends[0].get_title().get_text() == (
        "Points are means over 3 seeds; bars are 95 % bootstrap intervals."
    )
    references = [run for run in rows() if run.purpose == "reference"]
    draw(Findings(study(), references + [run for run in rows() if run.seed in (0, 7)]))  # references alone have bars
    assert drawn[1].legends[0].get_title().get_text() == "Points are the values of a single seed."


def test_families_of_other_panels_are_grey(drawn: list[Figure]) -> None:
    names = ["iqe-maxmean", "iqe-sum", "pqe-lh", "pqe-gg", "mrn", "mrn-fixed"]
    runs = [
        row(name, size, seed, 0.5 + 0.01 * number)
        for number, name in enumerate(names)
        for size in (10, 100)
        for seed in (0, 1)
    ]
    draw(Findings(study(families={name: {} for name in names}, claims=[], tuning_seeds=[]), runs))
    left, right = drawn[0].axes
    assert (left.get_title(), right.get_title()) == ("IQE, PQE", "MRN")
    assert [text.get_text() for text in end_labels(right)] == ["mrn", "mrn-fixed"]
    (others,) = heights(right, "0.85")
    np.testing.assert_allclose(others[~np.isnan(others)], np.repeat([0.5, 0.51, 0.52, 0.53], 2))
    assert "other families" in legend_of(drawn[0])
    drawn[0].draw_without_rendering()
    for ax in (left, right):
        boxes = [text.get_window_extent() for text in end_labels(ax)]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        assert ax.get_ylim() == FRACTION_LIMITS


@pytest.mark.parametrize("values", [[0.5], [0.1, 0.5]])
@pytest.mark.parametrize("command", ["train-agent", "train-graph"])
def test_before_the_first_run_is_complete(command: str, values: list[float], drawn: list[Figure]) -> None:
    axis = {"graph.fraction": values} if command == "train-graph" else {"learner.epochs": values}
    draw(Findings(study(command=command, axis=axis, claims=[]), []))
    assert len(drawn[0].axes) == 1


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_a_panel_per_world_has_no_lines_of_other_families(drawn: list[Figure]) -> None:
    draw(Findings(study(worlds={"a": {}, "b": {}}, claims=[]), []))
    assert len(drawn[0].axes) == 2
    assert "other families" not in legend_of(drawn[0])


def test_a_single_seed_has_no_intervals(drawn: list[Figure]) -> None:
    draw(Findings(study(seeds=[0]), [one for one in rows() if one.seed in (0, 7)]))
    assert drawn[0].legends[0].get_title().get_text() == "Points are the values of a single seed."


def test_points_of_fewer_seeds_are_said(drawn: list[Figure]) -> None:
    draw(Findings(study(), [one for one in rows() if one.seed != 2 or one.family != "dot"]))
    assert drawn[0].legends[0].get_title().get_text().startswith("Points are means over 2 to 3 seeds;")


def test_a_ranking_has_a_panel_per_world(drawn: list[Figure]) -> None:
    worlds = {"near": {"learner.lr": 1e-3}, "far": {"learner.lr": 1e-2}}
    plan = study(axis={"collector.trajectories": [10]}, worlds=worlds, claims=[])
    runs = [row("iqe-maxmean", 10, seed, 0.5, world=world, run=f"{world}{seed}") for world in worlds for seed in (0, 1)]
    draw(Findings(plan, runs))
    assert [ax.get_title() for ax in drawn[0].axes] == list(worlds)
    assert all(ax.get_xlim() == FRACTION_LIMITS for ax in drawn[0].axes)


def test_one_condition_is_drawn_as_a_ranking(drawn: list[Figure]) -> None:
    findings = Findings(study(axis={"collector.trajectories": [10]}), rows())
    draw(findings)
    (ax,) = drawn[0].axes
    assert drawn[0].get_supxlabel().startswith("success rate\n")
    assert ax.get_xlim() == FRACTION_LIMITS
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["dot (triangle=1)", "iqe-maxmean", "dot (triangle=3)", "oracle"]  # the best on top


def test_a_ranking_where_lower_is_better(drawn: list[Figure]) -> None:
    errors = {"iqe-maxmean": 0.1, "dot": 0.2}
    graphs = study(
        command="train-graph",
        axis={"graph.fraction": [0.5]},
        families={"iqe-maxmean": {}, "dot": {"model": "dot-disc"}},
    )
    findings = Findings(graphs, [row(name, 0, 0, None, value=0.5, scores={"mse": mse}) for name, mse in errors.items()])
    draw(findings)
    (ax,) = drawn[0].axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["dot", "iqe-maxmean"]
    assert ax.get_xscale() == "log"


def test_learning_curves_are_means_of_selected_configurations_at_the_largest_value(drawn: list[Figure]) -> None:
    def curve(family: str, seed: int, rates: list[float], choice: str = "", value: str = "100") -> list[dict[str, str]]:
        named = {"family": family, "choice": choice, "world": "", "value": value, "seed": str(seed)}
        return [named | {"step": str(10 * step), "success_rate": str(rate)} for step, rate in enumerate(rates, 1)]

    curves = [
        *curve("iqe-maxmean", 0, [0.2, 0.5]),
        *curve("iqe-maxmean", 1, [0.4, 0.6]),
        *curve("iqe-maxmean", 0, [0, 0], value="10"),
        *curve("dot", 0, [0.1, 0.2], "triangle=1"),
        *curve("dot", 0, [0.9, 0.9], "triangle=3"),  # not selected
    ]
    assert curves_picture(Findings(study(), rows()), curves, Path("curves")) == [Path("curves")]
    (ax,) = drawn[0].axes
    np.testing.assert_allclose(heights(ax, look(0).color, 1.6), [[0.3, 0.55]])
    np.testing.assert_allclose(heights(ax, look(7).color, 1.6), [[0.1, 0.2]])
    assert (ax.get_xlabel(), ax.get_ylim()) == ("training steps", FRACTION_LIMITS)
    assert drawn[0].get_suptitle().endswith("while training, trajectories 100")
    assert curves_picture(Findings(study(), rows()), curve("dot", 0, [0.1], "triangle=1"), Path("curves")) == []
