"""Which configuration is selected, and which runs that leaves."""

from pathlib import Path
from typing import Any

import pytest

from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.selection import Place, expected, select, tuned, wanted
from qrl.agents.studies.table import gather, matched
from qrl.common.errors import ConfigError
from tests.agents.studies.hand_made import row, study, swept, timeless_rows, tiny

IQE, DOT = Place("iqe-maxmean", ""), Place("dot", "")
TUNED: dict[str, Any] = {"seeds": [0, 1], "tuning_seeds": [7], "evaluate": "selected"}
REGULARIZED: dict[str, Any] = {"iqe-maxmean": {}, "dot": {"model": "dot", "grid": {"learner.triangle": [1, 3]}}}


def test_the_best_mean_on_the_tuning_seeds() -> None:
    one, other = "triangle=1", "triangle=3"
    rows = [
        *(row("dot", size, 7, score, one) for size, score in ((10, 0.1), (100, 0.8))),
        *(row("dot", size, 7, score, other) for size, score in ((10, 0.3), (100, 0.5))),
        row("dot", 10, 0, 1.0, other),  # evaluation runs do not count
    ]
    assert select(study(), rows) == {IQE: "", DOT: one}
    assert select(study(), [*rows, row("dot", 10, 7, None, one, status="failed")]) == {IQE: "", DOT: other}
    assert select(study(), []) == {IQE: "", DOT: None}


def test_every_world_has_a_selection_of_its_own() -> None:
    worlds: dict[str, Any] = {"a": {"learner.lr": 1e-3}, "b": {"learner.lr": 1e-2}}
    families = {**REGULARIZED, "iqe-maxmean": {"worlds": ["b"]}}
    plan = study(worlds=worlds, families=families, claims=[], evaluate="selected", seeds=[0])
    scores = {("a", "triangle=1"): 0.2, ("a", "triangle=3"): 0.1, ("b", "triangle=1"): 0.5, ("b", "triangle=3"): 0.6}
    rows = [row("dot", 10, 7, score, label, world=world) for (world, label), score in scores.items()]
    selected = select(plan, rows)
    assert selected == {Place("iqe-maxmean", "b"): "", Place("dot", "a"): "triangle=1", Place("dot", "b"): "triangle=3"}
    evaluated = {(run.family, *run.condition, run.configuration) for run in expected(plan, rows) if not run.tuning}
    assert evaluated == {
        (place.family, place.world, size, label) for place, label in selected.items() for size in (10, 100)
    }


def test_every_condition_may_have_a_selection_of_its_own() -> None:
    plan = study(families=REGULARIZED, tune="condition")
    scores = {(10, "triangle=1"): 0.2, (10, "triangle=3"): 0.1, (100, "triangle=1"): 0.5, (100, "triangle=3"): 0.6}
    selected = select(plan, [row("dot", size, 7, score, label) for (size, label), score in scores.items()])
    assert selected == {
        **{Place("iqe-maxmean", "", size): "" for size in (10, 100)},
        Place("dot", "", 10): "triangle=1",
        Place("dot", "", 100): "triangle=3",
    }
    with pytest.raises(ConfigError, match="tuning_values: with tune: condition"):
        study(families=REGULARIZED, tune="condition", tuning_values=[10])


def test_places_in_words() -> None:
    assert [str(place) for place in (DOT, Place("dot", "a"), Place("dot", "a", 0.5))] == [
        "dot",
        "dot in a",
        "dot in a at 0.5",
    ]


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
    assert select(graphs, rows) == {DOT: "lr=2"}


def test_only_selected_configurations_are_evaluated(tmp_path: Path) -> None:
    plan = tiny(families=REGULARIZED, **TUNED)
    jobs = swept(plan, tmp_path)
    assert len(jobs) == 2 + 2 + 2  # two tuning runs, and two seeds for each family
    rows = timeless_rows(tmp_path)
    assert {row.status for row in rows} == {"complete"}
    chosen = select(plan, rows)[DOT]
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
    assert [wanted(plan, run, {IQE: "", DOT: "triangle=3"}) for run in plan.runs].count(False) == 2


def test_tuning_at_some_values_of_the_axis() -> None:
    plan = study(tuning_values=[100])
    assert {run.condition.value for run in plan.runs if run.tuning} == {100}
    assert {run.condition.value for run in plan.runs if not run.tuning} == {10, 100}
    for values in ([], [50]):
        with pytest.raises(ConfigError, match="tuning_values: must be some of the values of the axis"):
            study(tuning_values=values)
