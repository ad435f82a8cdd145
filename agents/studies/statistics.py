"""Means over seeds with intervals.

Values are given as strata: an array over seeds per condition. A statistic is computed per stratum and averaged over
strata; bootstraps resample seeds within each stratum. With few seeds their intervals are too narrow, and the runs of a
seed under several conditions are not independent; claims are therefore decided by `t_interval` of one value per seed.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t, trim_mean

Values = NDArray[np.float64]
Statistic = Callable[[Values], Values]  # over the last axis
Interval = tuple[float, float]

RESAMPLES = 10_000
LEVEL = 0.95


def mean(values: Values) -> Values:
    return np.asarray(values.mean(-1))


def iqm(values: Values) -> Values:
    """The interquartile mean; the mean of fewer than four values."""
    return np.asarray(trim_mean(values, 0.25, axis=-1))


def over_strata(strata: Sequence[Values], statistic: Statistic = mean) -> float:
    return float(np.mean([statistic(values) for values in strata]))


def bootstrap(strata: Sequence[Values], statistic: Statistic = mean, seed: int = 0) -> Interval | None:
    """The interval of `over_strata`; None where a stratum has a single seed."""
    if min(len(values) for values in strata) < 2:
        return None
    rng = np.random.default_rng(seed)
    drawn = [statistic(values[rng.integers(len(values), size=(RESAMPLES, len(values)))]) for values in strata]
    return _interval(np.mean(drawn, 0))


def t_interval(values: Values) -> Interval | None:
    """Student's interval of the mean; None for a single value."""
    if len(values) < 2:
        return None
    middle = float(values.mean())
    half = float(t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return middle - half, middle + half


def improvement(better: Sequence[Values], worse: Sequence[Values]) -> float:
    """The probability that a run of `better` beats one of `worse`, ties counting half, averaged over strata."""
    return float(np.mean([_wins(x[None], y[None])[0] for x, y in zip(better, worse, strict=True)]))


def bootstrap_improvement(better: Sequence[Values], worse: Sequence[Values], seed: int = 0) -> Interval | None:
    if min(len(values) for values in (*better, *worse)) < 2:
        return None
    rng = np.random.default_rng(seed)

    def draw(values: Values) -> Values:
        return values[rng.integers(len(values), size=(RESAMPLES, len(values)))]

    return _interval(np.mean([_wins(draw(x), draw(y)) for x, y in zip(better, worse, strict=True)], 0))


def _wins(x: Values, y: Values) -> Values:
    return np.asarray((np.sign(x[:, :, None] - y[:, None, :]) / 2 + 0.5).mean((1, 2)))


def _interval(drawn: Values) -> Interval:
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
