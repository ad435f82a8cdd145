"""What a study knows of the commands that train."""

from typing import get_args

import pytest

from qrl.agents.evaluation.metrics import register_metric
from qrl.agents.runs.problems import PROBLEMS
from qrl.agents.studies.kinds import KINDS
from qrl.agents.studies.scoring import SCORERS
from qrl.agents.studies.settings import StudySettings


def test_every_command_has_its_kind_and_its_scorer() -> None:
    commands = get_args(StudySettings.model_fields["command"].annotation)
    assert list(commands) == list(KINDS) == list(SCORERS)
    assert {name: kind.problem for name, kind in KINDS.items()} == {name: PROBLEMS[name] for name in commands}


@pytest.mark.parametrize(
    ("command", "ranking", "higher_is_better"), [("train-agent", "success_rate", True), ("train-graph", "mse", False)]
)
def test_the_ranking_metric_is_the_first_headline(command: str, ranking: str, higher_is_better: bool) -> None:
    kind = KINDS[command]
    assert (kind.ranking, kind.higher_is_better) == (ranking, higher_is_better)
    assert set(kind.headline) <= set(kind.metrics)


def test_columns_of_earlier_releases() -> None:
    """The names and order of the columns of results.csv are a file format."""
    earlier = [
        *("success_rate", "spl", "excess_steps", "all_pairs_success_rate"),
        *("signed_error", "absolute_error", "spearman", "underestimated"),
        *("triangle_violations", "triangle_excess", "identity_error", "asymmetry"),
    ]
    assert [column for column in KINDS["train-agent"].metrics if column in earlier] == earlier
    assert list(KINDS["train-graph"].metrics) == [
        *("mse", "l1_error", "l1_error_clipped", "no_way_estimate", "no_way_estimate_clipped", "spearman")
    ]


@pytest.mark.usefixtures("plugin_metrics")
def test_a_plugins_metric_is_known_at_once() -> None:
    kind = KINDS["train-agent"]
    register_metric("luck.mean", title="  luck", help="how lucky it was")(lambda measurements: 0.5)
    assert list(kind.metrics)[-1] == list(kind.headline)[-1] == "luck_mean"
    assert kind.title("luck_mean") == "luck"
    assert kind.ranking == "success_rate"
