import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qrl import QModelSpec
from qrl.agents.learners.mad import MadLearner, mad_terms
from qrl.agents.learners.settings import GoalSettings, MadSettings
from qrl.envs.dataset import Dataset
from tests.agents.learners import naive_objectives
from tests.agents.learners.small_learners import SHORT, all_distances, check_step, make_learner, train_table
from tests.agents.learners.tables import Table

NONE = torch.zeros(0)
pairs = st.lists(st.tuples(st.floats(0, 20), st.integers(1, 20)), min_size=1, max_size=8)


def terms(distance: list[float], steps: list[float], random: list[float], settings: MadSettings) -> list[float]:
    values = mad_terms(torch.tensor(distance), torch.tensor(steps), torch.tensor(random), settings)
    return [value.item() for value in values]


def test_terms_by_hand() -> None:
    settings = MadSettings(bound_steps=4, max_distance=10)
    hindsight, push, bound = terms([3, 1, 9], [2, 4, 6], [2.5, 20], settings)
    assert hindsight == pytest.approx((0.5**2 + 0.75**2 + 0.5**2) / 3)
    assert push == pytest.approx(0.75**2 / 2)
    assert bound == pytest.approx((1 + 0) / 2)  # the mean over the pairs at most 4 steps apart


def test_without_near_pairs_or_any_the_terms_are_0() -> None:
    assert terms([9], [7], [0], MadSettings(hindsight_weight=0))[2] == 0
    assert terms([], [], [100], MadSettings()) == [0, 0, 0]


@given(pairs, st.integers(1, 20))
def test_properties_of_the_terms(values: list[tuple[float, int]], bound_steps: int) -> None:
    distance, steps = torch.tensor(values, dtype=torch.float64).T
    settings = MadSettings(bound_steps=bound_steps)
    hindsight, push, bound = mad_terms(distance, steps, distance, settings)
    assert hindsight >= 0
    assert 0 <= push <= 1
    exact = mad_terms(steps, steps, steps, settings)
    assert exact[0] == 0
    assert exact[2] == 0
    # Only pairs that are near and too long count.
    too_long = (distance > steps) & (steps <= bound_steps)
    assert (bound > 0) == ((distance - steps)[too_long].square() > 0).any()
    assert mad_terms(torch.minimum(distance, steps), steps, distance, settings)[2] == 0


def best_distance(steps: list[float], settings: MadSettings) -> float:
    """The distance that minimises the weighted hindsight and bound terms, on a grid."""
    h = torch.tensor(steps, dtype=torch.float64)
    losses = {}
    for d in np.arange(0, 20, 0.01):
        hindsight, _, bound = mad_terms(torch.full_like(h, d), h, NONE.double() + 1, settings)
        losses[d] = (settings.hindsight_weight * hindsight + settings.bound_weight * bound).item()
    return float(min(losses, key=lambda d: losses[d]))


def test_regression_alone_learns_a_mean_of_the_ways() -> None:
    alone = MadSettings(hindsight_weight=1, bound_weight=0)
    # The derivative of sum (d / h - 1)^2 is 0 at d = sum(1 / h) / sum(1 / h^2).
    assert best_distance([2, 10], alone) == pytest.approx((1 / 2 + 1 / 10) / (1 / 4 + 1 / 100), abs=0.02)


def test_the_bound_pulls_near_pairs_to_the_shortest_way() -> None:
    strict = MadSettings(hindsight_weight=1, bound_weight=1000, bound_steps=6)
    assert best_distance([3, 6], MadSettings(hindsight_weight=1, bound_weight=0)) > 3.5
    assert best_distance([3, 6], strict) == pytest.approx(3, abs=0.02)
    assert best_distance([8, 16], strict) > 9  # they are not near


@pytest.mark.parametrize("model", ["iqe-sum", "mrn-fixed"])
@pytest.mark.parametrize("goals", [MadSettings().goals, GoalSettings(current=0.2, future=0.4, random=0.4)])
def test_a_step_equals_the_naive_step(model: str, goals: GoalSettings) -> None:
    settings = MadSettings(goals=goals, max_distance=3, bound_steps=20, **{**SHORT, "batch_size": 24})
    check_step(make_learner(MadLearner, settings, model), naive_objectives.mad_loss, "model")


def test_a_batch_without_future_goals_pushes_only() -> None:
    settings = MadSettings(goals=GoalSettings(current=1, future=0, random=0), **SHORT)
    scalars = make_learner(MadLearner, settings).step()
    assert scalars["loss_hindsight"] == scalars["loss_bound"] == scalars["hindsight_distance"] == 0
    assert scalars["loss"] == pytest.approx(scalars["loss_push"])


def test_on_one_shortest_way_the_distances_are_exact() -> None:
    line = Dataset.from_arrays(np.arange(6.0)[:, None], [0] * 5, [5], num_actions=1)
    settings = MadSettings(
        batch_size=64, lr=0.1, min_steps=300, epochs=0.01, max_distance=20, hindsight_weight=1, push_weight=0.01
    )
    learner = train_table(MadLearner, settings, Table(QModelSpec(1, 1, 0.8), 6), line)
    learned = all_distances(learner.model, 6)[:, 0, :, 0]
    for i in range(5):
        for j in range(i + 1, 6):
            assert learned[i, j].item() == pytest.approx(j - i, rel=0.02)
    # Nothing is known of the ways back: they are pushed apart.
    assert learned[4, 0] > 15
    assert math.isfinite(learned.sum())
