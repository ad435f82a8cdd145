"""Intervals over seeds, by hand and by their properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qrl.agents.studies.statistics import bootstrap, bootstrap_improvement, improvement, iqm, over_strata, t_interval

ROWS = arrays(np.float64, st.integers(2, 6), elements=st.floats(-1, 1))


def test_means_over_strata() -> None:
    strata = [np.array([0.0, 1.0]), np.array([4.0, 4.0, 4.0, 8.0])]
    assert over_strata(strata) == (0.5 + 5) / 2
    assert iqm(np.array([-100.0, 1, 3, 100])) == 2
    assert iqm(np.array([1.0, 2, 6])) == 3  # of fewer than four: the mean


def test_the_interval_of_two_values_by_hand() -> None:
    # Drawing two of {0, 1} gives means 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4: both ends hold more than 2.5 %.
    assert bootstrap([np.array([0.0, 1.0])]) == (0, 1)
    # Twenty values, one of them 1: its number of draws is Binomial(20, 1/20), whose 97.5 % quantile is 3.
    low, high = bootstrap([np.array([1.0] + [0.0] * 19)]) or (None, None)
    assert low == 0
    assert high == pytest.approx(3 / 20)


def test_strata_are_drawn_apart() -> None:
    # Between strata lies 100, within them nothing: the interval has no width.
    assert bootstrap([np.zeros(3), np.full(3, 100.0)]) == (50, 50)


def test_one_seed_has_no_interval() -> None:
    assert bootstrap([np.array([0.3])]) is None
    assert bootstrap([np.array([0.3, 0.4]), np.array([0.3])]) is None
    assert bootstrap_improvement([np.array([0.3])], [np.array([0.3, 0.4])]) is None


@given(ROWS, ROWS)
def test_intervals_lie_within_the_values(one: np.ndarray, other: np.ndarray) -> None:
    found = bootstrap([one, other])
    assert found is not None
    low, high = found
    slack = 1e-9
    assert (one.min() + other.min()) / 2 - slack <= low <= over_strata([one, other]) + slack
    assert low <= high <= (one.max() + other.max()) / 2 + slack


@given(ROWS, ROWS)
def test_improvement_against_counting(one: np.ndarray, other: np.ndarray) -> None:
    counted = sum(1.0 if x > y else 0.5 if x == y else 0.0 for x in one for y in other) / (len(one) * len(other))
    assert improvement([one], [other]) == pytest.approx(counted)
    assert improvement([one], [other]) + improvement([other], [one]) == pytest.approx(1)
    found = bootstrap_improvement([one], [other])
    assert found is not None
    assert 0 <= found[0] <= found[1] <= 1


def test_sure_improvement() -> None:
    better, worse = [np.array([0.8, 0.9]), np.array([0.5, 0.6])], [np.array([0.1, 0.2]), np.array([0.3, 0.4])]
    assert improvement(better, worse) == 1
    assert bootstrap_improvement(better, worse) == (1, 1)
    assert improvement([better[0], worse[1]], [worse[0], better[1]]) == 0.5


def test_students_interval() -> None:
    # 1, 2, 3: mean 2, deviation 1, and 4.3027 deviations of the mean at two degrees of freedom.
    assert t_interval(np.array([1.0, 2, 3])) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert t_interval(np.array([1.0])) is None
    assert t_interval(np.full(3, 0.5)) == (0.5, 0.5)


def test_students_interval_is_rarely_wrong() -> None:
    rng = np.random.default_rng(0)
    wrong = [low > 0 or high < 0 for low, high in (t_interval(rng.normal(size=3)) or (0, 0) for _ in range(2000))]
    assert 0.035 < np.mean(wrong) < 0.065
