"""Results as JSON, scalars and text."""

import json
from typing import Any

import numpy as np
import pytest

from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.results import REFERENCES, Evaluation, Results, keys_help
from qrl.agents.evaluation.summary import by_distance, summary, text_table
from qrl.envs.collector import CollectorSettings, collect
from tests.agents.worlds import corridor


def test_results_as_json_scalars_and_text() -> None:
    evaluator = Evaluator(collect(CollectorSettings(trajectories=60)))
    results = [evaluator.score(evaluator.reference(name)) for name in REFERENCES]
    oracle, random, _ = results
    made = Evaluation(**dict(oracle), references={"random": random})
    content = json.loads(made.model_dump_json())
    assert next(iter(content)) == "success_rate"
    assert content["success_rate"] == 1
    assert content["references"]["random"]["distances"] is None
    scalars = oracle.scalars()
    assert scalars["success_rate"] == 1
    assert scalars["distances.reachable.absolute_error"] == 0
    assert "seed" not in scalars
    table = text_table(results)
    lines = table.splitlines()
    assert lines[0].split() == ["oracle", "random", "empirical-graph"]
    assert lines[1].split()[:3] == ["success", "rate", "1.000"]
    assert not any("triangle" in line for line in lines)  # no reference has a model
    assert all(len(values) == 3 for _, values in summary(results))


def test_infinite_numbers_are_null_in_json() -> None:
    evaluator = Evaluator(corridor(20, "traps"))
    oracle = evaluator.score(evaluator.reference("oracle"))
    assert oracle.distances is not None
    assert oracle.distances.unreachable.mean_estimate == np.inf
    content = json.loads(Evaluation(**dict(oracle)).model_dump_json())
    assert content["distances"]["unreachable"]["mean_estimate"] is None


def test_the_table_shows_what_it_says() -> None:
    """Every number of the results is different, so each row can only have come from its own key."""
    numbers = iter(np.arange(1, 200) / 8)

    def errors() -> dict[str, Any]:
        keys = ("known", "signed_error", "absolute_error", "spearman", "underestimated")
        return {"pairs": 5, **{key: next(numbers) for key in keys}}

    results = Results(
        name="x",
        max_steps=1,
        seed=0,
        success_rate=next(numbers),
        spl=next(numbers),
        excess_steps=next(numbers),
        tasks=77,
        failures={"blocked": 71, "loop": 72, "cap": 73, "ended": 74},
        unreachable_tasks=75,
        success_by_distance=[{"low": 0, "high": 4, "tasks": 76, "success_rate": next(numbers)}],
        all_pairs={"success_rate": next(numbers)},
        distances={
            "reachable": errors(),
            "unreachable": {"pairs": 9, "mean_estimate": next(numbers), "beyond": next(numbers)},
            "seen": errors(),
            "unseen": errors(),
            "by_distance": [{"low": 0, "high": 4, **errors()}],
        },
        axioms={
            key: next(numbers)
            for key in ("triangle_violations", "triangle_excess", "identity_error", "asymmetry", "true_asymmetry")
        },
    )
    assert results.distances is not None
    assert results.axioms is not None
    known, off = results.distances, results.axioms
    expected = {
        "success rate": results.success_rate,
        "SPL": results.spl,
        "excess steps of successes": results.excess_steps,
        "tasks": 77,
        "  failed: blocked": 71,
        "  failed: loop": 72,
        "  failed: cap": 73,
        "  failed: ended": 74,
        "unreachable tasks (left out)": 75,
        "success rate, all pairs of states": results.all_pairs.success_rate if results.all_pairs else None,
        "steps to the goal, estimate - truth": known.reachable.signed_error,
        "  |estimate - truth|": known.reachable.absolute_error,
        "    pairs seen in a trajectory": known.seen.absolute_error,
        "    pairs unseen": known.unseen.absolute_error,
        "  rank correlation (Spearman)": known.reachable.spearman,
        "  under-estimated by more than 1": known.reachable.underestimated,
        "  share with an estimate": known.reachable.known,
        "  goals without a way: mean estimate": known.unreachable.mean_estimate,
        "    longer than every true distance": known.unreachable.beyond,
        "triangle violations": off.triangle_violations,
        "  largest excess": off.triangle_excess,
        "identity error": off.identity_error,
        "asymmetry, learned": off.asymmetry,
        "asymmetry, true": off.true_asymmetry,
    }
    rows = dict(summary([results]))
    assert list(rows) == list(expected)
    for title, value in expected.items():
        assert float(rows[title][0]) == pytest.approx(value, abs=0.06), title
    titles, (bucket, values) = by_distance(results)
    assert (titles[0], bucket) == ("x, by true distance", "  0-4")
    first = known.by_distance[0]
    wanted = [76, results.success_by_distance[0].success_rate, first.signed_error, first.absolute_error]
    assert [float(value) for value in values] == pytest.approx(wanted, abs=0.006)
    assert results.scalars()["success_by_distance.0-4.tasks"] == 76
    assert results.scalars()["failures.loop"] == 72


def test_every_key_is_explained() -> None:
    text = keys_help()
    for key in ("success_rate", "distances.unseen", "axioms.identity_error", "references", "failures"):
        assert f"\n  {key} " in f"\n{text}"
    assert "None" not in text
    assert set(Results.model_fields) <= {line.split()[0] for line in text.splitlines()}
