"""Results as rows of text."""

import numpy as np
import pytest

from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.metric import Value
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.results import REFERENCES, Results
from qrl.agents.evaluation.tables import align, results_rows, rows_by_distance, text_table
from tests.agents.worlds import corridor


def test_a_column_per_result() -> None:
    evaluator = Evaluator(corridor(20, "traps"))
    results = [evaluator.score(evaluator.reference(name)) for name in REFERENCES]
    lines = text_table(results).splitlines()
    assert lines[0].split() == ["oracle", "random", "empirical-graph"]
    assert lines[1].split()[:3] == ["success", "rate", "1.000"]
    assert not any("triangle" in line for line in lines)  # no reference has a model
    assert all(len(values) == 3 for _, values in results_rows(results))
    assert lines[-4:] == ["", *(f"{name:<15}  {meaning}" for name, meaning in REFERENCES.items())]


def test_the_table_shows_what_it_says() -> None:
    """Every number of the results is different, so each row can only have come from its own key."""
    numbers = iter(np.arange(1, 200) / 8)
    values: dict[str, Value] = {
        metric.key: float(next(numbers)) if metric.digits else 70 + index for index, metric in enumerate(METRICS)
    }
    by_distance = {"signed_error": 91.5, "absolute_error": 92.5}
    results = Results(
        "x",
        "exhaustive",
        1,
        0,
        values,
        success_by_distance=[{"low": 0, "high": 4, "tasks": 76, "success_rate": 90.5}],
        errors_by_distance=[{"low": 0, "high": 4, **by_distance}],
    )
    expected = {
        "success rate": "success_rate",
        "SPL": "spl",
        "excess steps of successes": "excess_steps",
        "tasks": "tasks",
        "  failed: blocked": "failures.blocked",
        "  failed: loop": "failures.loop",
        "  failed: cap": "failures.cap",
        "  failed: ended": "failures.ended",
        "unreachable tasks (left out)": "unreachable_tasks",
        "success rate, all pairs of states": "all_pairs.success_rate",
        "  success rate, pairs seen in a trajectory": "all_pairs.seen.success_rate",
        "  success rate, unseen pairs": "all_pairs.unseen.success_rate",
        "ranking accuracy": "ranking_accuracy",
        "steps to the goal, estimate - exact": "distances.reachable.signed_error",
        "  |estimate - exact|": "distances.reachable.absolute_error",
        "  rank correlation (Spearman)": "distances.reachable.spearman",
        "  linear correlation (Pearson)": "distances.reachable.pearson",
        "  variation of estimate / exact": "distances.reachable.ratio_cv",
        "  underestimated by more than 1": "distances.reachable.underestimated",
        "  fraction with an estimate": "distances.reachable.known",
        "  |estimate - exact|, pairs seen in a trajectory": "distances.seen.absolute_error",
        "  |estimate - exact|, unseen pairs": "distances.unseen.absolute_error",
        "  unreachable goals: mean estimate": "distances.unreachable.mean_estimate",
        "    longer than every exact distance": "distances.unreachable.beyond",
        "triangle violations": "axioms.triangle_violations",
        "  largest excess": "axioms.triangle_excess",
        "identity error": "axioms.identity_error",
        "asymmetry, learned": "axioms.asymmetry",
        "asymmetry, exact": "axioms.true_asymmetry",
        "validation loss": "validation.loss",
        "held-out trajectories": "validation.trajectories",
        "  mean length": "validation.mean_length",
        "hindsight consistency": "hindsight.consistency",
        "  excess over hindsight": "hindsight.excess",
        "  rank correlation with hindsight": "hindsight.spearman",
    }
    rows = dict(results_rows([results]))
    assert list(rows) == list(expected)
    for title, key in expected.items():
        assert float(rows[title][0]) == pytest.approx(values[key], abs=0.06), title
    titles, (ends, cells) = rows_by_distance(results)
    assert (titles[0], ends) == ("x, by exact distance", "  0-4")
    assert titles[1] == ["tasks", "success rate", "estimate - exact", "|estimate - exact|"]
    assert [float(cell) for cell in cells] == [76, 90.5, 91.5, 92.5]
    assert results.scalars()["success_by_distance.0-4.tasks"] == 76


def test_the_interval_of_sampled_tasks() -> None:
    values: dict[str, Value] = {metric.key: None for metric in METRICS}
    results = Results("x", "paper", 300, 0, values | {"success_rate": 0.5}, (0.25, 0.75))
    assert results_rows([results]) == [("success rate", ["0.500 (0.25-0.75)"])]


def test_alignment() -> None:
    text = align([("", ["a", "long name"]), ("title", ["1.5", "-"])])
    assert text == "         a  long name\ntitle  1.5          -"
