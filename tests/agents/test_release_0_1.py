"""Runs made by release 0.1 (`tests/data/release-0.1`) load, evaluate to the same numbers and resume bit-exactly,
up to the rounding of the processor that made them.

`agent` and `stopped` have the same settings; `stopped` was interrupted halfway. `own` collected its data itself.
"""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import qrl
from qrl.agents.evaluation.graph_scores import score_pairs
from qrl.agents.runs.run import Run
from qrl.scripts.evaluate_planning import main as evaluate_planning
from qrl.scripts.train_agent import main as train_agent
from tests.agents.runs.running import finish, stop_at
from tests.agents.worlds import other_notices

RELEASE = Path(__file__).parents[1] / "data" / "release-0.1"
DOORS, GRAPH = RELEASE / "doors.npz", RELEASE / "graph.npz"


def old_run(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(RELEASE / name, folder / name))


@pytest.mark.parametrize(
    ("name", "command"),
    [("agent", "train-agent"), ("own", "train-agent"), ("stopped", "train-agent"), ("graph", "train-graph")],
)
def test_the_command_is_inferred(name: str, command: str) -> None:
    run = Run.open(RELEASE / name)
    assert run.problem.command == command
    assert run.num_steps == 40
    assert run.load_agent()[1].step == (20 if name == "stopped" else 40)


def assert_same(value: Any, expected: Any, key: str = "") -> None:
    """The new JSON has every key of the old one, with the same value."""
    if isinstance(expected, dict):
        assert isinstance(value, dict), key
        missing = {inner for inner in expected.keys() - value.keys() if expected[inner] is not None}
        assert not missing, key
        for inner in expected.keys() & value.keys():
            assert_same(value[inner], expected[inner], f"{key}.{inner}")
    elif isinstance(expected, list):
        assert len(value) == len(expected), key
        for index, pair in enumerate(zip(value, expected, strict=True)):
            assert_same(*pair, f"{key}[{index}]")
    elif isinstance(expected, float):
        assert value == pytest.approx(expected, rel=1e-4, abs=1e-5), key
    else:
        assert value == expected, key


def test_an_agent_evaluates_to_the_same_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = old_run("agent", tmp_path)
    assert evaluate_planning([str(run), "--dataset", str(DOORS), "--json", str(tmp_path / "new.json")]) == 0
    new, old = (json.loads(path.read_text()) for path in (tmp_path / "new.json", RELEASE / "agent.json"))
    for key in ("dataset", "run", "notices"):  # descriptions and paths
        old.pop(key)
    assert other_notices(new["notices"]) == []
    assert {"success_rate", "failures", "distances", "axioms", "references", "step"} <= old.keys() & new.keys()
    assert old["distances"].keys() <= new["distances"].keys()
    assert old["axioms"].keys() == new["axioms"].keys()
    assert_same(new, old)
    assert other_notices(capsys.readouterr().err.splitlines()) == []


def test_a_run_with_its_own_data() -> None:
    evaluation = qrl.evaluate(RELEASE / "own")
    complete = json.loads((RELEASE / "own" / "COMPLETE").read_text())
    assert other_notices(evaluation.notices) == []
    assert evaluation.success_rate == pytest.approx(complete["success_rate"])
    assert evaluation["distances.reachable.absolute_error"] == pytest.approx(complete["absolute_error"], rel=1e-4)
    observations = Run.open(RELEASE / "own").dataset.observations
    assert qrl.load(RELEASE / "own").steps_to_goal(observations[0], observations[5]).shape == (4,)


def test_a_graph_scores_the_same(tmp_path: Path) -> None:
    run = Run.resume(old_run("graph", tmp_path), {"dataset": str(GRAPH)})
    learner = run.trainer.learner
    scores = score_pairs(learner.model, learner.observations, run.dataset.validation)
    complete = json.loads((RELEASE / "graph" / "COMPLETE").read_text())
    assert {key: complete[key] for key in scores if math.isfinite(scores[key])} == pytest.approx(scores, rel=1e-4)


def test_a_stopped_run_resumes_bit_exactly(tmp_path: Path) -> None:
    run, stopped_again = old_run("stopped", tmp_path / "whole"), old_run("stopped", tmp_path / "parts")
    assert train_agent(["--resume", str(run), f"dataset={DOORS}"]) == 0
    stop_at(Run.resume(stopped_again, {"dataset": str(DOORS)}), 30)
    finish(Run.resume(stopped_again))
    resumed, parts, expected = (
        load_file(path / "checkpoint.safetensors") for path in (run, stopped_again, RELEASE / "agent")
    )
    assert resumed.keys() == parts.keys() == expected.keys()
    for key, tensor in expected.items():
        assert torch.equal(resumed[key], parts[key]), key
        # Processors round differently, and Adam takes whole steps where a gradient is little but rounding.
        tolerance = 2e-4 if key.endswith(("bias", "running_mean")) else 1e-6
        assert torch.allclose(resumed[key], tensor, rtol=0, atol=tolerance), key
    facts = json.loads((run / "run.json").read_text())
    assert facts["command"] == "train-agent"  # recorded from now on
    assert "extensions" not in facts
