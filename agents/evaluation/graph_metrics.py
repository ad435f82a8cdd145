"""The metrics of train-graph: one table, from which metrics.csv, TensorBoard, studies and --help derive."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qrl.agents.evaluation.metric import Metric
from qrl.agents.evaluation.statistics import rank_correlation

if TYPE_CHECKING:
    from qrl.agents.evaluation.graph_scores import PairEstimates


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _metric(key: str, title: str, text: str, compute: object, digits: int, higher_is_better: bool) -> Metric:
    return Metric(key, title, text, compute, digits, higher_is_better, key, headline=True, in_training=True)  # type: ignore[arg-type]


def _errors(pairs: "PairEstimates", estimate: NDArray[np.float64]) -> float:
    return _mean(np.abs(estimate - pairs.exact)[pairs.reachable])


def error_of_mean(training: NDArray[np.floating], validation: NDArray[np.floating], discount: float) -> float:
    """The MSE on `validation` distances of predicting the mean gamma^d of the `training` distances for every pair."""
    training, validation = (discount ** distances.astype(np.float64) for distances in (training, validation))
    return _mean(np.square(validation - training.mean()))


GRAPH_METRICS = [
    _metric("mse", "MSE", "mean squared error of the discounted distance",
            lambda pairs: _mean(np.square(pairs.discounted - pairs.discount**pairs.exact)), 5, False),
    _metric("l1_error", "abs. error, reachable", "mean of |estimate - exact| over reachable pairs",
            lambda pairs: _errors(pairs, pairs.estimate), 2, False),
    _metric("l1_error_clipped", "clipped", "the same, with estimates clipped to what a float resolves of D",
            lambda pairs: _errors(pairs, pairs.clipped), 2, False),
    _metric("no_way_estimate", "estimate, unreachable", "mean estimate of unreachable pairs, which should be large",
            lambda pairs: _mean(pairs.estimate[~pairs.reachable]), 1, True),
    _metric("no_way_estimate_clipped", "clipped", "the same, with clipped estimates",
            lambda pairs: _mean(pairs.clipped[~pairs.reachable]), 1, True),
    _metric("spearman", "rank correlation", "rank correlation of estimate and exact distance over reachable pairs",
            lambda pairs: rank_correlation(pairs.estimate[pairs.reachable], pairs.exact[pairs.reachable]), 3, True),
]  # fmt: skip
