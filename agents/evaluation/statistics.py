"""Statistics of evaluations; scipy.stats has them too, but importing it takes longer than many evaluations."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_Z = NormalDist().inv_cdf(0.975)


def linear_correlation(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Pearson's correlation of finite values; NaN for a constant side."""
    if any(len(side) == 0 or (side == side[0]).all() for side in (a, b)):
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def rank_correlation(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Spearman's rank correlation with mean ranks for ties; NaN for NaN and for a constant side."""
    if np.isnan(a).any() or np.isnan(b).any():
        return math.nan
    return linear_correlation(mean_ranks(a), mean_ranks(b))


def mean_ranks(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """From 1 for the smallest; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = counts.cumsum() - (counts - 1) / 2
    return ranks[inverse]


def wilson_interval(successes: float, trials: float) -> tuple[float, float]:
    """A 95 % confidence interval of a success rate; expected successes are no integers."""
    rate, weight = successes / trials, _Z**2 / trials
    center = (rate + weight / 2) / (1 + weight)
    half = math.sqrt(rate * (1 - rate) * weight + weight**2 / 4) / (1 + weight)
    return center - half if successes else 0.0, center + half if successes < trials else 1.0
