"""The table of train-graph's metrics; their values by hand are in test_graph_scores."""

import numpy as np
import pytest

from qrl.agents.evaluation.graph_metrics import GRAPH_METRICS, error_of_mean
from qrl.agents.evaluation.metric import columns


def test_every_metric_is_a_column_of_training() -> None:
    assert list(columns(GRAPH_METRICS)) == [metric.key for metric in GRAPH_METRICS]
    assert all(metric.in_training and metric.headline and metric.help for metric in GRAPH_METRICS)


def test_which_direction_is_better() -> None:
    better = {metric.key: metric.higher_is_better for metric in GRAPH_METRICS}
    assert better["mse"] is better["l1_error"] is False
    assert better["no_way_estimate"] is better["spearman"] is True


def test_the_error_of_the_mean_by_hand() -> None:
    training, validation = np.array([0, np.inf], np.float32), np.array([1, np.inf, 2], np.float32)
    # gamma = 0.5: 1 and 0 have the mean 0.5; 0.5, 0 and 0.25 are 0, 0.5 and 0.25 away from it.
    assert error_of_mean(training, validation, 0.5) == pytest.approx((0 + 0.25 + 0.0625) / 3)
    assert error_of_mean(validation, validation, 0.5) == pytest.approx(np.var([0.5, 0, 0.25]))
