"""How finished runs are scored, and their scores read."""

import json
import math
from pathlib import Path

import pytest

from qrl.agents.runs.run import Run
from qrl.agents.studies.scoring import SCORERS
from qrl.common.errors import FileError
from tests.agents.studies.hand_made import TINY_GRAPHS, tiny

# As release 0.2 wrote it, shortened.
EARLIER = {
    "success_rate": 0.25,
    "success_interval": None,
    "spl": 0.2,
    "excess_steps": None,
    "tasks": 4,
    "failures": {"blocked": 3, "loop": 0, "cap": 0, "ended": 0},
    "success_by_distance": [{"low": 3, "high": 3, "tasks": 4, "success_rate": 0.25}],
    "name": "iqe",
    "protocol": "exhaustive",
    "all_pairs": {"success_rate": 0.5, "success_interval": None, "spl": 0.5, "tasks": 90},
    "distances": {"reachable": {"pairs": 9, "signed_error": -1.5, "absolute_error": 2, "underestimated": 0.75}},
    "axioms": {"triangle_violations": 0.0, "triangle_excess": 0.0, "identity_error": 0.1, "asymmetry": 0.2},
}


def test_evaluations_of_earlier_releases_are_read(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text(json.dumps(EARLIER))
    scores = SCORERS["train-agent"].read(path)
    assert {name: value for name, value in scores.items() if value is not None} == {
        "success_rate": 0.25,
        "spl": 0.2,
        "all_pairs_success_rate": 0.5,
        "signed_error": -1.5,
        "absolute_error": 2,
        "underestimated": 0.75,
        "triangle_violations": 0,
        "triangle_excess": 0,
        "identity_error": 0.1,
        "asymmetry": 0.2,
    }


@pytest.mark.parametrize("command", ["train-agent", "train-graph"])
@pytest.mark.parametrize("text", ["{", "[]", "3", '{"mse": "low", "success_rate": "high"}'])
def test_damaged_evaluations_are_named(command: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text(text)
    with pytest.raises(FileError, match=r"evaluation.json is damaged; delete it"):
        SCORERS[command].read(path)


def test_graph_runs_are_scored_by_their_last_metrics(tmp_path: Path) -> None:
    run = Run(tmp_path, tiny(TINY_GRAPHS).runs[0].settings)
    run.metrics.path.write_text("step,mse,l1_error,no_way_estimate\n1,0.9,9,8\n2,0.5,nan,inf\n")
    path = tmp_path / "evaluation.json"
    SCORERS["train-graph"].evaluate(run, path)
    assert json.loads(path.read_text()) == {"mse": 0.5, "no_way_estimate": "inf"}  # strict JSON
    scores = SCORERS["train-graph"].read(path)
    assert (scores["mse"], scores["no_way_estimate"], scores["l1_error"]) == (0.5, math.inf, None)
