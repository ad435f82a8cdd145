"""The table of metrics: values by hand, and metrics of a plugin."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from qrl import register_metric
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.measurements import Estimates, Measurements, Tasks
from qrl.agents.evaluation.metrics import ERRORS, METRICS, TASKS, Metric, columns
from qrl.agents.evaluation.report import write_report
from qrl.agents.evaluation.results import column_values, keys_help
from qrl.agents.evaluation.tables import text_table
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.planning.references import oracle_steps
from qrl.agents.runs.run import Run
from qrl.common.errors import ConfigError
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from tests.agents.worlds import corridor, small_settings


def values(metrics: list[Metric], part: Any) -> dict[str, Any]:
    return {metric.key: metric.compute(part) for metric in metrics}


def test_planning_by_hand() -> None:
    success, steps = np.array([True, True, False, False]), np.array([4, 6, 300, 300])
    cause = np.array(["", "", "loop", "blocked"])
    known = values(TASKS, Tasks(success, steps, cause, np.array([4, 3, 11, 2], np.float32)))
    assert known["success_rate"] == 0.5
    assert known["spl"] == pytest.approx((1 + 0.5) / 4)
    assert known["excess_steps"] == pytest.approx(1.5)
    assert known["tasks"] == 4
    failures = [known[f"failures.{cause}"] for cause in ("blocked", "loop", "cap", "ended")]
    assert failures == [1, 1, 0, 0]
    unknown = values(TASKS, Tasks(success, steps, cause))
    assert (unknown["spl"], unknown["excess_steps"], unknown["success_rate"]) == (None, None, 0.5)
    none = values(TASKS, Tasks(success[:0], steps[:0], cause[:0], np.empty(0, np.float32)))
    assert set(none.values()) == {None}


def test_errors_by_hand() -> None:
    estimate = np.array([1, 5, 2, np.inf], np.float32)
    errors = values(ERRORS, Estimates(estimate, np.array([2, 3, 4, 9], np.float32), 9))
    assert errors["pairs"] == 4
    assert errors["known"] == 0.75
    assert errors["signed_error"] == pytest.approx((-1 + 2 - 2) / 3)
    assert errors["absolute_error"] == pytest.approx(5 / 3)
    assert errors["underestimated"] == pytest.approx(1 / 3)  # more than 1 below: only 2 for 4
    assert errors["spearman"] == pytest.approx(0.8)  # ranks 1 3 2 4


def measure(steps: np.ndarray, layout: str = "traps") -> dict[str, Any]:
    truth = ground_truth(load_layout(layout))
    measurements = Measurements(tasks=None, dataset=corridor(10, layout), truth=truth, steps=steps)
    return values(METRICS, measurements)


def test_errors_of_seen_and_unseen_pairs() -> None:
    from qrl.agents.evaluation.measurements import seen_goals

    exact = oracle_steps(ground_truth(load_layout("traps")))
    seen = seen_goals(corridor(10, "traps"))
    # Too short by 2 where seen, too long by 1 where unseen, and 7 where unreachable.
    steps = np.where(np.isinf(exact), 7, exact + np.where(seen, -2, 1)).astype(np.float32)
    metrics = measure(steps)
    other = ~np.eye(len(exact), dtype=bool)[..., None] & np.ones(4, bool)
    finite = np.isfinite(exact) & other
    fraction = seen[finite].mean()
    assert metrics["distances.reachable.pairs"] == finite.sum()
    assert metrics["distances.reachable.known"] == 1
    assert metrics["distances.reachable.signed_error"] == pytest.approx(1 - 3 * fraction)
    assert metrics["distances.reachable.absolute_error"] == pytest.approx(1 + fraction)
    assert metrics["distances.reachable.underestimated"] == pytest.approx(fraction)
    keys = ("signed_error", "absolute_error", "underestimated")
    assert [metrics[f"distances.seen.{key}"] for key in keys] == [-2, 2, 1]
    assert [metrics[f"distances.unseen.{key}"] for key in keys] == [1, 1, 0]
    assert metrics["distances.seen.pairs"] + metrics["distances.unseen.pairs"] == finite.sum()
    assert metrics["distances.unreachable.pairs"] == (np.isinf(exact) & other).sum() > 0
    assert (metrics["distances.unreachable.mean_estimate"], metrics["distances.unreachable.beyond"]) == (7, 0)
    assert metrics["success_rate"] is metrics["axioms.asymmetry"] is None


def test_the_exact_distances_have_no_errors_and_infinite_estimates_are_counted() -> None:
    exact = oracle_steps(ground_truth(load_layout("traps")))
    metrics = measure(exact)
    assert metrics["distances.reachable.absolute_error"] == 0
    assert metrics["distances.reachable.spearman"] == pytest.approx(1)
    assert metrics["distances.unreachable.beyond"] == 1
    half = exact.copy()
    half[:, ::2] = np.inf
    partly = measure(half)
    assert partly["distances.reachable.known"] == pytest.approx(0.5, abs=0.1)
    assert partly["distances.reachable.absolute_error"] == 0
    assert partly["distances.reachable.spearman"] < 0.7


def test_rank_correlation_of_a_reversed_estimate() -> None:
    exact = oracle_steps(ground_truth(load_layout("corridor")))
    assert measure(-exact, "corridor")["distances.reachable.spearman"] == pytest.approx(-1)
    assert measure(np.zeros_like(exact), "corridor")["distances.reachable.spearman"] is None


def test_keys_and_columns_are_unique() -> None:
    assert len({metric.key for metric in METRICS}) == len(METRICS)
    assert len(columns(METRICS)) == sum(metric.column is not None for metric in METRICS)
    assert all(metric.help for metric in METRICS)


@pytest.fixture
def toy_metric() -> Iterator[Metric]:
    """As a plugin registers it."""
    before = list(METRICS)

    @register_metric("toy.wins", title="toy wins", help="how often the toy wins", digits=1, higher_is_better=True)
    def toy_wins(measurements: Measurements) -> float | None:
        return None if measurements.tasks is None else 12.5

    yield METRICS[-1]
    METRICS[:] = before


def test_a_metric_of_a_plugin_shows_up_everywhere(toy_metric: Metric, trained: Path, tmp_path: Path) -> None:
    import shutil

    opened = TrainedAgent.open(shutil.copytree(trained, tmp_path / "iqe"))
    evaluator = Evaluator(opened.dataset)
    evaluation = opened.evaluate(evaluator)
    assert evaluation["toy.wins"] == 12.5
    assert json.loads(evaluation.to_json())["toy"] == {"wins": 12.5}
    assert any(
        line.split() == ["toy", "wins", "12.5", "12.5"]
        for line in text_table([evaluation.results, evaluation.references[0]]).splitlines()
    )
    assert "\n  toy.wins " in keys_help()
    assert "how often the toy wins" in keys_help()
    subject = opened.subject(evaluator)
    write_report(tmp_path / "r.html", [opened], evaluator, [subject], [evaluation.results, *evaluation.references])
    page = (tmp_path / "r.html").read_text()
    assert "<dt>toy wins</dt><dd>how often the toy wins</dd>" in page
    assert "<td>toy wins</td><td>12.5</td>" in page
    opened.log(evaluation.results)
    events = EventAccumulator(str(opened.run.tensorboard)).Reload()
    assert [event.value for event in events.Scalars("planning-exhaustive/toy.wins")] == [12.5]
    assert column_values(evaluation.results.values)["toy_wins"] == 12.5


def test_a_key_is_registered_once(toy_metric: Metric) -> None:
    def other(measurements: Measurements) -> float:
        return 1.0

    for key in ("toy.wins", "toy", "toy.wins.often", "success_rate", "axioms", "seed", "distances.by_distance"):
        with pytest.raises(ConfigError, match=f"the metric '{key}' collides with the key .*; choose another key"):
            register_metric(key, title="", help="x")(other)
    for key in ("all_pairs_success_rate", "signed_error", "toy_wins"):
        with pytest.raises(ConfigError, match=f"the metric '{key}' has the same column as another metric"):
            register_metric(key, title="", help="x")(other)
    register_metric("toy.wins", title="again", help="x")(toy_metric.compute)  # a notebook's cell run twice
    assert [metric.title for metric in METRICS if metric.key == "toy.wins"] == ["again"]


@pytest.fixture
def restored_metrics() -> Iterator[None]:
    before = list(METRICS)
    yield
    METRICS[:] = before


def test_an_error_in_a_plugin_names_its_metric(restored_metrics: None) -> None:
    @register_metric("toy.broken", title="broken", help="x")
    def broken(measurements: Measurements) -> float:
        return 1 / 0

    with pytest.raises(ConfigError, match=r"the metric 'toy\.broken' failed: ZeroDivisionError"):
        Evaluator(corridor(5)).score(Evaluator(corridor(5)).reference("oracle"))


def test_a_metric_during_training(restored_metrics: None, tmp_path: Path) -> None:
    @register_metric("toy.length", title="length", help="x", in_training=True)
    def length(measurements: Measurements) -> float:
        return float(len(measurements.dataset.states))

    run = Run.start(small_settings(tmp_path / "run"))
    *_, last = run.train()
    assert last["toy_length"] == len(run.dataset.states)
    assert run.metrics.last()["toy_length"] == len(run.dataset.states)
