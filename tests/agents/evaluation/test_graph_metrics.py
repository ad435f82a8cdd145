"""The table of train-graph's metrics; their values by hand are in test_graph_scores."""

from qrl.agents.evaluation.graph_metrics import GRAPH_METRICS
from qrl.agents.evaluation.metric import columns


def test_every_metric_is_a_column_of_training() -> None:
    assert list(columns(GRAPH_METRICS)) == [metric.key for metric in GRAPH_METRICS]
    assert all(metric.in_training and metric.headline and metric.help for metric in GRAPH_METRICS)


def test_which_direction_is_better() -> None:
    better = {metric.key: metric.higher_is_better for metric in GRAPH_METRICS}
    assert better["mse"] is better["l1_error"] is False
    assert better["no_way_estimate"] is better["spearman"] is True
