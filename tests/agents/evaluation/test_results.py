"""Results as values, scalars and JSON."""

import json

import numpy as np
import pytest

from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.results import Evaluation, Results, column_values, keys_help, read_values
from qrl.common.nesting import nest
from tests.agents.worlds import corridor


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    """Of the oracle on `traps`, where some goals are unreachable."""
    evaluator = Evaluator(corridor(20, "traps"))
    return evaluator.evaluate(evaluator.reference("oracle"))


def test_json(evaluation: Evaluation) -> None:
    content = json.loads(evaluation.to_json())
    assert content["name"] == "oracle"
    assert content["success_rate"] == evaluation.success_rate == evaluation["success_rate"] == 1
    assert content["failures"] == {"blocked": 0, "loop": 0, "cap": 0, "ended": 0}
    assert set(content["references"]) == {"random", "empirical-graph"}
    assert content["references"]["random"]["distances"] is None
    assert content["distances"]["by_distance"][0]["low"] == 0
    assert (content["run"], content["complete"]) == (None, None)
    assert content["dataset_hash"] == corridor(20, "traps").content_hash


def test_infinite_numbers_are_null_in_json(evaluation: Evaluation) -> None:
    assert evaluation["distances.unreachable.mean_estimate"] == np.inf
    assert json.loads(evaluation.to_json())["distances"]["unreachable"]["mean_estimate"] is None


def test_scalars(evaluation: Evaluation) -> None:
    scalars = evaluation.results.scalars()
    assert scalars["success_rate"] == 1
    assert scalars["distances.reachable.absolute_error"] == 0
    assert "seed" not in scalars
    assert not any(key.startswith("axioms.") for key in scalars)  # the oracle has no model
    first = evaluation.results.success_by_distance[0]
    assert scalars[f"success_by_distance.{first['low']}-{first['high']}.tasks"] == first["tasks"]
    assert scalars["distances.by_distance.0-2.absolute_error"] == 0


def test_values_are_read_from_json(evaluation: Evaluation) -> None:
    values = read_values(evaluation.to_json())
    expected = {key: None if value == np.inf else value for key, value in evaluation.results.values.items()}
    assert values == expected
    assert column_values(values)["spl"] == 1
    assert column_values(values)["triangle_violations"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not the JSON of an evaluation"),
        ("{}", "not the JSON of an evaluation"),
        ('{"success_rate": true}', "success_rate is not a number"),
        ('{"success_rate": "high"}', "success_rate is not a number"),
        ("{", "Expecting property name"),
    ],
)
def test_json_of_something_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_values(text)


def test_every_key_of_the_json_is_explained(evaluation: Evaluation) -> None:
    text = keys_help()
    explained = {line.split()[0] for line in text.splitlines()}
    assert {metric.key for metric in METRICS} <= explained
    content = json.loads(evaluation.to_json())
    for key, value in content.items():
        nested = isinstance(value, dict) and key != "references"
        for dotted in [f"{key}.{inner}" for inner in value] if nested else [key]:
            assert dotted in explained or any(name.startswith(f"{dotted}.") for name in explained), dotted
    assert "None" not in text


def test_missing_values_and_groups_are_none() -> None:
    results = Results("x", None, 300, 0, {metric.key: None for metric in METRICS})
    content = results.as_dict()
    assert content["success_rate"] is None
    assert {key: content[key] for key in nest({metric.key: None for metric in METRICS})} == dict.fromkeys(
        nest({metric.key: None for metric in METRICS})
    )
    assert results.scalars() == {}
