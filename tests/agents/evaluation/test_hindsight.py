"""Distances against hindsight: by hand, against a slow reference, and as properties of exact distances."""

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from qrl import QModelSpec, make_q_model
from qrl.agents.evaluation import hindsight
from qrl.agents.evaluation.hindsight import Hindsight, HindsightPairs, measure_hindsight
from qrl.agents.evaluation.measurements import Measurements
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.validation import Validation
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.q_models import QModel
from tests.agents.worlds import corridor, without_layout


def two_trajectories() -> Dataset:
    """States 10, 11, 12 by the actions 0, 1, then 20, 21 by the action 2."""
    return Dataset.from_arrays([[10], [11], [12], [20], [21]], [0, 1, 2], [2, 1], num_actions=3)


def value(key: str, distance: list[float], steps: list[int]) -> float | None:
    """A metric of these pairs, through the one table."""
    pairs = Hindsight(np.array(distance, np.float32), np.array(steps))
    measurements = Measurements(
        tasks=None, dataset=two_trajectories(), validation=Validation(0.5, pairs, np.array([2, 1]))
    )
    (metric,) = (metric for metric in METRICS if metric.key == key)
    return metric.compute(measurements)


def test_all_pairs_by_hand() -> None:
    pairs = HindsightPairs.of(two_trajectories())
    rows = list(zip(pairs.states, pairs.actions, pairs.goals, pairs.goal_actions, pairs.steps, strict=True))
    # An action taken at x_j is that of the pair; at the ends, 12 and 21, any action will do.
    assert [(s, a, g, b if g not in (2, 4) else None, steps) for s, a, g, b, steps in rows] == [
        (0, 0, 1, 1, 1),
        (0, 0, 2, None, 2),
        (1, 1, 2, None, 1),
        (3, 2, 4, None, 1),
    ]


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_all_pairs_against_a_slow_reference(lengths: list[int]) -> None:
    total = sum(lengths)
    rows = np.arange(total + len(lengths))[:, None]  # no observation repeats: a row is its own id
    actions = np.arange(total) % 3
    pairs = HindsightPairs.of(Dataset.from_arrays(rows, actions, lengths, num_actions=3))
    expected, state, taken = [], 0, 0
    for length in lengths:
        for i, j in combinations(range(length + 1), 2):
            goal_action = actions[taken + j] if j < length else None
            expected.append((state + i, actions[taken + i], state + j, goal_action, j - i))
        state, taken = state + length + 1, taken + length
    found = zip(pairs.states, pairs.actions, pairs.goals, pairs.goal_actions, pairs.steps, strict=True)
    for row, wanted in zip(found, expected, strict=True):
        assert [one for one, other in zip(row, wanted, strict=True) if other is not None] == [
            other for other in wanted if other is not None
        ]
        assert 0 <= row[3] < 3


def test_of_many_pairs_a_uniform_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset.from_arrays(np.arange(10)[:, None], [0] * 7, [1, 2, 4], num_actions=1)
    exhaustive = HindsightPairs.of(dataset)
    assert len(exhaustive.steps) == 1 + 3 + 10
    monkeypatch.setattr(hindsight, "MAX_PAIRS", 13)
    sampled = HindsightPairs.of(dataset)
    assert len(sampled.steps) == 13
    assert all(np.array_equal(ids, getattr(HindsightPairs.of(dataset), name)) for name, ids in vars(sampled).items())
    monkeypatch.setattr(hindsight, "MAX_PAIRS", 14_000)
    first, later = hindsight._sampled_pairs(dataset, np.random.default_rng(0))
    drawn = Counter(zip(dataset.states[first].tolist(), dataset.states[later].tolist(), strict=True))
    assert drawn.keys() == set(zip(exhaustive.states.tolist(), exhaustive.goals.tolist(), strict=True))
    assert all(850 < times < 1150 for times in drawn.values())  # a thousand each


def test_metrics_by_hand() -> None:
    steps, distance = [1, 2, 3, 4], [1.0005, 2.5, 1.0, 7.5]
    assert value("hindsight.consistency", distance, steps) == 0.5  # the first only by rounding
    assert value("hindsight.excess", distance, steps) == pytest.approx((0.0005 + 0.5 + 0 + 3.5) / 4)
    assert value("hindsight.spearman", distance, steps) == pytest.approx(0.4)  # ranks 2, 3, 1, 4: 1 - 6 * 6 / 60
    assert value("hindsight.pairs", distance, steps) == 4
    assert value("validation.loss", distance, steps) == 0.5
    assert value("validation.trajectories", distance, steps) == 2
    assert value("validation.mean_length", distance, steps) == 1.5


def test_distances_of_zero_are_consistent_and_rank_nothing() -> None:
    assert value("hindsight.consistency", [0, 0, 0], [1, 2, 3]) == 1
    assert value("hindsight.excess", [0, 0, 0], [1, 2, 3]) == 0
    assert value("hindsight.spearman", [0, 0, 0], [1, 2, 3]) is None


def test_infinite_and_undefined_distances_are_not_consistent() -> None:
    assert value("hindsight.consistency", [np.inf, np.nan, 1], [1, 2, 3]) == pytest.approx(1 / 3)
    assert value("hindsight.excess", [np.inf, 1, 1], [1, 2, 3]) == np.inf
    assert value("hindsight.spearman", [1, np.inf, 2], [1, 3, 2]) == pytest.approx(1)


@given(st.lists(st.tuples(st.floats(0, 50, width=32), st.integers(1, 40)), min_size=2, max_size=30))
def test_metrics_against_a_slow_reference(pairs: list[tuple[float, int]]) -> None:
    distance, steps = map(list, zip(*pairs, strict=True))
    consistent = sum(d <= h + 1e-3 for d, h in pairs) / len(pairs)
    excess = sum(max(d - h, 0) for d, h in pairs) / len(pairs)
    assert value("hindsight.consistency", distance, steps) == pytest.approx(consistent)
    assert value("hindsight.excess", distance, steps) == pytest.approx(excess)
    doubled = [2 * d for d in distance]
    assert value("hindsight.spearman", doubled, steps) == value("hindsight.spearman", distance, steps)  # ranks only


class Exact(QModel):
    """The exact distances between pairs of `traps`, or from pairs to states."""

    def __init__(self, goal_kind: Any) -> None:
        super().__init__(QModelSpec(18, 4, 0.95))
        self.goal_kind = goal_kind
        truth = ground_truth(corridor(1, "traps").world)  # type: ignore[arg-type]
        self.after = torch.tensor(truth.after_action(truth.distances))  # (states, actions, goals): steps that remain

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        return observations.long()

    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        assert action is not None
        remaining = self.after[state, action, goal]
        if self.goal_kind == "state":
            return remaining
        return torch.where((state == goal) & (action == goal_action), 0.0, remaining + 1)


@pytest.mark.parametrize("goal_kind", ["state-action", "state"])
def test_exact_distances_are_consistent(goal_kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hindsight, "_CHUNK", 50)
    dataset = corridor(15, "traps")
    pairs = HindsightPairs.of(dataset)
    model = Exact(goal_kind)
    measured = measure_hindsight(model, torch.arange(len(dataset.observations)), pairs)
    assert len(measured) > 500
    assert measured.consistent.all()
    assert (measured.distance[pairs.steps == 1] == 1).mean() > 0.5  # and not just because they are small
    model.after += 1  # one step too long
    assert not measure_hindsight(model, torch.arange(len(dataset.observations)), pairs).consistent.all()


@pytest.mark.parametrize("name", ["iqe-sum", "unconstrained-state", "dot"])
def test_distances_of_single_pairs(name: str) -> None:
    """In chunks and with shared encodings as one by one."""
    dataset = without_layout(corridor(3))
    torch.manual_seed(0)
    sizes = {"hidden_sizes": (8,)} | ({"latent_size": 8} if name == "iqe-sum" else {})
    model = make_q_model(name, QModelSpec(18, 4, 0.95), **sizes).eval()
    observations, pairs = torch.tensor(dataset.observations), HindsightPairs.of(dataset)
    measured = measure_hindsight(model, observations, pairs)
    for index in range(0, len(measured), 7):
        s, g = (model.encode(observations[ids[index]][None]) for ids in (pairs.states, pairs.goals))
        a, b = (torch.tensor([ids[index]]) for ids in (pairs.actions, pairs.goal_actions))
        steps = model.distance(s, a, g, b).item() + (name == "unconstrained-state")
        assert measured.distance[index] == pytest.approx(steps, abs=1e-4)
