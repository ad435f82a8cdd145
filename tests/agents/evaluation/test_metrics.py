"""The table of metrics: values by hand, and metrics of a plugin."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from qrl import register_metric
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.measurements import Estimates, Measurements, Tasks
from qrl.agents.evaluation.metric import Metric, columns
from qrl.agents.evaluation.metrics import ERRORS, METRICS, TASKS
from qrl.agents.evaluation.report import write_report
from qrl.agents.evaluation.results import column_values, keys_help
from qrl.agents.evaluation.tables import text_table
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.planning.planner import RandomPolicy, TablePolicy, WalkingPolicy
from qrl.agents.planning.references import oracle_steps
from qrl.agents.runs.run import Run
from qrl.common.errors import ConfigError
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import Layout, load_layout
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
    # Finite estimates 1 5 2 of 2 3 4: deviations -5/3 7/3 -2/3 and -1 0 1.
    assert errors["pearson"] == pytest.approx(1 / np.sqrt(26 / 3 * 2))
    # With the action itself, 2 6 3 of 3 4 5: ratios 2/3 3/2 3/5.
    ratios = np.array([2 / 3, 3 / 2, 3 / 5])
    assert errors["ratio_cv"] == pytest.approx(np.sqrt(np.mean((ratios - 83 / 90) ** 2)) / (83 / 90))


def errors_of(estimate: Any, exact: Any) -> dict[str, Any]:
    return values(ERRORS, Estimates(np.array(estimate, np.float32), np.array(exact, np.float32), 100))


EXACT = st.lists(st.integers(0, 50), min_size=2, max_size=30)


@given(EXACT, st.floats(0.01, 100))
def test_the_ratio_of_distances_right_up_to_a_factor_does_not_vary(exact: list[int], factor: float) -> None:
    assert errors_of(exact, exact)["ratio_cv"] == 0
    distances = np.array(exact) + 1  # of the state-action pair: its own step, and those that remain
    assert errors_of(factor * distances - 1, exact)["ratio_cv"] == pytest.approx(0, abs=1e-4)


@given(EXACT, st.integers(0, 2**32 - 1), st.floats(0.1, 10))
def test_the_variation_of_the_ratio_is_free_of_scale(exact: list[int], seed: int, factor: float) -> None:
    distances = np.random.default_rng(seed).uniform(1, 50, len(exact))
    one, other = (errors_of(scaled - 1, exact)["ratio_cv"] for scaled in (distances, factor * distances))
    assert other == pytest.approx(one, rel=1e-4, abs=1e-5)


@given(EXACT, st.floats(0.1, 10), st.floats(-5, 5))
def test_the_linear_correlation_of_affine_estimates_is_1(exact: list[int], slope: float, shift: float) -> None:
    rising, falling = (errors_of(sign * slope * np.array(exact) + shift, exact)["pearson"] for sign in (1, -1))
    if len(set(exact)) == 1:
        assert rising is falling is None
    else:
        assert (rising, falling) == (pytest.approx(1, abs=1e-6), pytest.approx(-1, abs=1e-6))


def test_ratio_and_linear_correlation_that_do_not_exist() -> None:
    for estimate in ([-1, -1], [-3, 0], [np.inf, np.nan], []):  # mean ratio 0 or negative, or nothing to compare
        assert errors_of(estimate, [1, 5][: len(estimate)])["ratio_cv"] is None, estimate
    for estimate in ([2, 2], [np.inf, 3], []):
        assert errors_of(estimate, [1, 5][: len(estimate)])["pearson"] is None, estimate


def test_infinite_estimates_are_left_out_of_ratio_and_linear_correlation() -> None:
    some, all_known = errors_of([3, np.inf, 1, 9], [1, 2, 3, 5]), errors_of([3, 1, 9], [1, 3, 5])
    for key in ("ratio_cv", "pearson"):
        assert some[key] == all_known[key]


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
    assert metrics["distances.reachable.pearson"] == pytest.approx(1)
    assert metrics["distances.reachable.ratio_cv"] == 0
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


def walked(policy: WalkingPolicy, dataset: Dataset) -> dict[str, Any]:
    """The metrics of a policy without any estimates."""
    assert dataset.layout is not None
    truth = ground_truth(dataset.layout)
    return values(METRICS, Measurements(tasks=None, dataset=dataset, truth=truth, policy=policy))


def random_table(layout: Layout, seed: int, optimal: float) -> TablePolicy:
    """Optimal actions for a fraction of states and goals, random ones for the others."""
    rng = np.random.default_rng(seed)
    best = oracle_steps(ground_truth(layout)).argmin(-1)
    table = np.where(rng.random(best.shape) < optimal, best, rng.integers(4, size=best.shape))
    return TablePolicy(table, layout.observations, RandomPolicy(4, 0))


@pytest.mark.parametrize("optimal", [0, 0.5, 0.9])
def test_ranking_accuracy_against_a_plain_loop(optimal: float) -> None:
    dataset = corridor(5, "traps")  # where some goals are unreachable
    assert dataset.layout is not None
    truth, policy = ground_truth(dataset.layout), random_table(dataset.layout, 0, optimal)
    hits, chances, pairs = 0, 0.0, 0
    for state in range(len(truth.transitions)):
        for goal in range(len(truth.transitions)):
            if goal == state or np.isinf(truth.distances[state, goal]):
                continue
            # An optimal action leaves one step less.
            remaining = [truth.distances[following, goal] for following in truth.transitions[state]]
            good = [steps == truth.distances[state, goal] - 1 for steps in remaining]
            hits += good[policy.table[state, goal]]
            chances += sum(good) / 4
            pairs += 1
    assert 0 < hits < pairs
    assert walked(policy, dataset)["ranking_accuracy"] == pytest.approx(hits / pairs)
    assert walked(RandomPolicy(4, 0), dataset)["ranking_accuracy"] == pytest.approx(chances / pairs)


def test_ranking_accuracy_by_hand() -> None:
    layout = Layout("#####\n#S.G#\n#####")
    dataset = Dataset.from_arrays(layout.observations[:2], [1], [1], num_actions=4, layout=layout)
    up, right, left = 0, 1, 3
    # (0, 1) and (0, 2) right; (1, 0) wrong, (1, 2) right; (2, 0) left, (2, 1) pushes against a wall. The diagonal
    # does not count.
    table = np.array([[up, right, right], [right, up, right], [left, up, up]])
    policy = TablePolicy(table, layout.observations, RandomPolicy(4, 0))
    assert walked(policy, dataset)["ranking_accuracy"] == pytest.approx(4 / 6)
    assert walked(RandomPolicy(4, 0), dataset)["ranking_accuracy"] == pytest.approx(1 / 4)  # one action of four


def test_who_always_acts_optimally_always_succeeds() -> None:
    dataset = corridor(5, "traps")
    assert dataset.layout is not None
    metrics = walked(random_table(dataset.layout, 0, optimal=1), dataset)
    assert (metrics["ranking_accuracy"], metrics["all_pairs.success_rate"]) == (1, 1)
    assert metrics["distances.reachable.pairs"] is None


def test_success_on_seen_and_unseen_pairs_against_a_plain_loop() -> None:
    dataset = corridor(10, "traps")
    assert dataset.layout is not None
    truth, policy = ground_truth(dataset.layout), random_table(dataset.layout, 1, optimal=0.9)
    seen = set()
    for episode in range(dataset.num_episodes):
        first, last = int(dataset.offsets[episode]), int(dataset.offsets[episode + 1])
        states = dataset.states[first + episode : last + episode + 1].tolist()
        seen |= {(state, goal) for step, state in enumerate(states) for goal in states[step + 1 :]}
    reached: dict[bool, list[bool]] = {True: [], False: []}
    for start, goal in np.argwhere(np.isfinite(truth.distances)).tolist():
        if start == goal:
            continue
        state, steps = start, 0
        while state != goal and steps < 300:
            state, steps = truth.transitions[state, policy.table[state, goal]], steps + 1
        reached[(start, goal) in seen].append(state == goal)
    metrics = walked(policy, dataset)
    for part, outcomes in (("seen", reached[True]), ("unseen", reached[False])):
        assert metrics[f"all_pairs.{part}.tasks"] == len(outcomes)
        assert metrics[f"all_pairs.{part}.success_rate"] == pytest.approx(np.mean(outcomes))
    assert 0 < metrics["all_pairs.unseen.success_rate"] < metrics["all_pairs.seen.success_rate"] < 1
    tasks = [metrics[f"all_pairs.{part}tasks"] for part in ("", "seen.", "unseen.")]
    assert tasks[0] == tasks[1] + tasks[2]


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
    assert '<th scope="row">toy wins<small>how often the toy wins</small></th><td>12.5</td>' in page
    opened.log(evaluation.results)
    events = EventAccumulator(str(opened.run.tensorboard)).Reload()
    (event,) = events.Tensors("evaluation/exhaustive")
    assert "\ntoy wins" in event.tensor_proto.string_val[0].decode()
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
