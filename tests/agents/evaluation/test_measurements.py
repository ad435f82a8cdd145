"""What the metrics are computed from."""

import numpy as np
import pytest

from qrl.agents.evaluation.measurements import Measurements, Tasks, distance_ranges, reachable_goals, seen_goals
from qrl.agents.planning.planner import Outcome, TablePolicy
from qrl.agents.planning.references import oracle_steps
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import Layout, load_layout
from tests.agents.worlds import corridor


@pytest.mark.parametrize(
    ("layout", "expected"),
    [("six-rooms", ["0-4", "45-49"]), ("corridor", ["0-0", "9-9"]), ("traps", ["0-2", "24-26"])],
)
def test_ranges_of_distances(layout: str, expected: list[str]) -> None:
    truth = ground_truth(load_layout(layout))
    ranges = distance_ranges(truth.distances)
    assert len(ranges) <= 10
    assert [f"{low}-{high}" for low, high in (ranges[0], ranges[-1])] == expected
    values = [value for low, high in ranges for value in range(low, high + 1)]
    assert values == [*range(len(values))]
    assert ranges[-1][0] <= truth.distances[np.isfinite(truth.distances)].max() <= ranges[-1][1]


def test_seen_goals_against_a_plain_loop() -> None:
    dataset = corridor(10, "traps")
    expected = np.zeros((len(dataset.observations), len(dataset.observations), 4), bool)
    for episode in range(dataset.num_episodes):
        first, last = int(dataset.offsets[episode]), int(dataset.offsets[episode + 1])
        states = dataset.states[first + episode : last + episode + 1]
        for step in range(last - first):
            for goal in states[step + 1 :]:
                expected[states[step], goal, dataset.actions[first + step]] = True
    np.testing.assert_array_equal(seen_goals(dataset), expected)


def test_estimates_of_pairs() -> None:
    dataset = corridor(10, "traps")
    truth = ground_truth(load_layout("traps"))
    exact, seen = oracle_steps(truth), seen_goals(dataset)
    measurements = Measurements(tasks=None, dataset=dataset, truth=truth, steps=exact + np.float32(1))
    reachable, unreachable = measurements.reachable, measurements.unreachable
    assert reachable is not None
    assert unreachable is not None
    assert measurements.seen is not None
    assert measurements.unseen is not None
    compared = reachable_goals(exact)
    assert len(reachable) == compared.sum()
    assert len(measurements.seen) == (compared & seen).sum() > 0
    assert len(measurements.unseen) == (compared & ~seen).sum() > 0
    assert not compared[np.arange(len(exact)), np.arange(len(exact))].any()  # not the state itself as goal
    assert len(unreachable) == np.isinf(exact).sum() - np.isinf(np.diagonal(exact)).sum() > 0
    assert not unreachable.known.any()
    assert (reachable.error == 1).all()
    assert reachable.longest == exact[compared].max()
    few = reachable.between(3, 4)
    assert set(few.exact) == {3, 4}
    assert len(few) == np.isin(exact[compared], (3, 4)).sum()


def test_all_pairs_are_walked_from_every_state() -> None:
    truth = ground_truth(Layout("########\n#S.G#.G#\n########"))
    policy = TablePolicy.greedy(oracle_steps(truth), truth.layout.observations, seed=0)
    measurements = Measurements(tasks=None, dataset=corridor(2), truth=truth, policy=policy)
    pairs = measurements.all_pairs
    assert pairs is not None
    assert len(pairs) == 3 * 2 + 2 * 1
    assert pairs.success.all()
    assert measurements.unreachable_tasks == 1


def test_parts_that_do_not_exist() -> None:
    measurements = Measurements(tasks=None, dataset=corridor(2))
    walked = ("all_pairs", "seen_pairs", "unseen_pairs", "optimal_actions", "unreachable_tasks")
    for part in (*walked, "reachable", "seen", "unseen", "unreachable", "axioms"):
        assert getattr(measurements, part) is None, part


def test_tasks_by_distance() -> None:
    outcome = Outcome(np.array([True, False, True]), np.array([2, 300, 5]), np.array(["", "loop", ""]))
    tasks = Tasks.of(outcome, np.array([2, 3, 4], np.float32))
    part = tasks.between(3, 9)
    assert len(tasks) == 3
    assert part.steps.tolist() == [300, 5]
    assert part.cause.tolist() == ["loop", ""]
    assert part.success.tolist() == [False, True]
