"""Against scipy.stats."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, pearsonr, spearmanr

from qrl.agents.evaluation.statistics import linear_correlation, rank_correlation, wilson_interval

VALUES = st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0, 7.0, math.inf])  # few, so that there are ties


@given(st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=30))
def test_rank_correlation(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert math.isnan(rank_correlation(a, b))
    else:
        assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)


def test_rank_correlation_by_hand() -> None:
    assert rank_correlation(np.array([2.0, 3, 5]), np.array([3.0, 3, 5])) == pytest.approx(math.sqrt(3) / 2)
    assert math.isnan(rank_correlation(np.array([]), np.array([])))
    assert math.isnan(rank_correlation(np.array([1.0, math.nan, 2]), np.array([1.0, 2, 3])))


@given(st.lists(st.tuples(VALUES.filter(math.isfinite), VALUES.filter(math.isfinite)), min_size=2, max_size=30))
def test_linear_correlation(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert math.isnan(linear_correlation(a, b))
    else:
        assert linear_correlation(a, b) == pytest.approx(pearsonr(a, b).statistic, abs=1e-12)


def test_linear_correlation_by_hand() -> None:
    assert linear_correlation(np.array([1.0, 2, 3]), np.array([0.0, 2, 1])) == pytest.approx(0.5)
    assert math.isnan(linear_correlation(np.array([]), np.array([])))


@given(st.integers(1, 500).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_wilson_interval(counts: tuple[int, int]) -> None:
    expected = binomtest(*counts).proportion_ci(method="wilson")
    low, high = wilson_interval(*counts)
    assert 0 <= low < high <= 1
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert (low == 0) == (counts[0] == 0)
    assert (high == 1) == (counts[0] == counts[1])
