"""The results of a comparison in a sentence."""

from qrl.agents.evaluation.metric import Value
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.results import Results
from qrl.agents.evaluation.takeaway import takeaway


def result(name: str, **values: Value) -> Results:
    known = {key.replace("__", "."): value for key, value in values.items()}
    return Results(name, "exhaustive", 300, 0, {metric.key: known.get(metric.key) for metric in METRICS})


def test_the_best_agent_comes_first() -> None:
    distances: dict[str, Value] = {
        "distances__reachable__absolute_error": 1.5,
        "distances__reachable__signed_error": -0.25,
    }
    results = [
        result("worse", success_rate=0.25, tasks=1200),
        result("better", success_rate=0.5, tasks=1200, **distances),
        result("oracle", success_rate=1.0, tasks=1200),
    ]
    assert takeaway(results, agents=2) == (
        "better reaches the goal in 50.0 % of 1,200 tasks; worse in 25.0 %. For comparison: oracle 100.0 %. "
        "The distances of better are off by 1.50 steps on average (0.25 too short)."
    )


def test_an_agent_without_distances_or_tasks() -> None:
    assert takeaway([result("gcbc", success_rate=1.0, tasks=1)], 1) == "gcbc reaches the goal in 100.0 % of 1 tasks."
    axioms = [result("a", axioms__triangle_violations=0.0), result("b", axioms__triangle_violations=0.015)]
    assert takeaway(axioms, 2).endswith("violate the triangle inequality: a 0.00%, b 1.50%.")
    assert "no distances to compare" in takeaway([result("gcbc")], 1)
