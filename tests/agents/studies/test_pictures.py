"""The figure of a study."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from qrl.agents.studies.findings import Findings
from qrl.agents.studies.pictures import study_picture
from tests.agents.studies.hand_made import row, rows, study


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that would be saved."""
    figures: list[Figure] = []
    monkeypatch.setattr("qrl.agents.studies.pictures.save_figure", lambda figure, path: figures.append(figure))
    return figures


def test_several_conditions_are_drawn_as_lines(drawn: list[Figure]) -> None:
    findings = Findings(study(), rows())
    study_picture(findings, findings.summaries(), Path("figure.png"))
    (ax,) = drawn[0].axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("trajectories", "success rate")
    lines = {line.get_label(): line for line in ax.lines}
    assert {"iqe-maxmean", "dot (triangle=1)", "(oracle)"} <= set(lines)
    assert np.asarray(lines["iqe-maxmean"].get_ydata()) == pytest.approx([0.5, 0.75])
    assert len(ax.lines) == 4  # the configuration that was not selected is a thin line without a label


def test_one_condition_is_drawn_as_a_ranking(drawn: list[Figure]) -> None:
    findings = Findings(study(axis={"collector.trajectories": [10]}), rows())
    study_picture(findings, findings.summaries(), Path("figure.png"))
    (ax,) = drawn[0].axes
    assert ax.get_xlabel() == "success rate"
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
    study_picture(findings, findings.summaries(), Path("figure.png"))
    (ax,) = drawn[0].axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["dot", "iqe-maxmean"]
    assert ax.get_xscale() == "log"
