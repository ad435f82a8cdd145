"""Which configuration is selected, and which runs that leaves."""

from pathlib import Path
from typing import Any

import pytest

from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.selection import expected, select, tuned, wanted
from qrl.agents.studies.table import gather, matched
from qrl.common.errors import ConfigError
from tests.agents.studies.hand_made import row, study, swept, timeless_rows, tiny

TUNED: dict[str, Any] = {"seeds": [0, 1], "tuning_seeds": [7], "evaluate": "selected"}
REGULARIZED: dict[str, Any] = {"iqe-maxmean": {}, "dot": {"model": "dot", "grid": {"learner.triangle": [1, 3]}}}


def test_the_best_mean_on_the_tuning_seeds() -> None:
    one, other = "triangle=1", "triangle=3"
    rows = [
        *(row("dot", size, 7, score, one) for size, score in ((10, 0.1), (100, 0.8))),
        *(row("dot", size, 7, score, other) for size, score in ((10, 0.3), (100, 0.5))),
        row("dot", 10, 0, 1.0, other),  # evaluation runs do not count
    ]
    assert select(study(), rows) == {"iqe-maxmean": "", "dot": one}
    assert select(study(), [*rows, row("dot", 10, 7, None, one, status="failed")]) == {"iqe-maxmean": "", "dot": other}
    assert select(study(), []) == {"iqe-maxmean": "", "dot": None}


def test_lower_is_better_for_errors() -> None:
    graphs = study(
        command="train-graph",
        axis={"graph.fraction": [0.5]},
        families={"dot": {"grid": {"learner.lr": [1, 2]}}},
        claims=[],
    )
    metric = graphs.settings.kind.ranking
    rows = [
        row("dot", 0, 7, None, label, scores={metric: score}, value=0.5) for label, score in (("lr=1", 3), ("lr=2", 2))
    ]
    assert select(graphs, rows) == {"dot": "lr=2"}


def test_only_selected_configurations_are_evaluated(tmp_path: Path) -> None:
    plan = tiny(families=REGULARIZED, **TUNED)
    jobs = swept(plan, tmp_path)
    assert len(jobs) == 2 + 2 + 2  # two tuning runs, and two seeds for each family
    rows = timeless_rows(tmp_path)
    assert {row.status for row in rows} == {"complete"}
    chosen = select(plan, rows)["dot"]
    assert {row.choice for row in rows if row.family == "dot" and row.purpose == "evaluation"} == {chosen}
    assert [row.run for row in matched(plan, rows)] == [row.run for row in rows]
    assert swept(plan, tmp_path) == []
    # A study that grows to all configurations computes the others.
    assert len(swept(tiny(families=REGULARIZED, **(TUNED | {"evaluate": "all"})), tmp_path)) == 2


def test_before_tuning_all_runs_are_planned(tmp_path: Path) -> None:
    plan = tiny(families=REGULARIZED, **TUNED)
    rows = gather(StudyFolder(tmp_path), plan)
    assert len(rows) == 8
    assert not tuned(plan, rows)
    assert len(expected(plan, rows)) == 2 + 2 + 2  # as many as in the end
    assert [wanted(plan, run, {"iqe-maxmean": "", "dot": "triangle=3"}) for run in plan.runs].count(False) == 2


def test_tuning_at_some_values_of_the_axis() -> None:
    plan = study(tuning_values=[100])
    assert {run.condition.value for run in plan.runs if run.tuning} == {100}
    assert {run.condition.value for run in plan.runs if not run.tuning} == {10, 100}
    for values in ([], [50]):
        with pytest.raises(ConfigError, match="tuning_values: must be some of the values of the axis"):
            study(tuning_values=values)
