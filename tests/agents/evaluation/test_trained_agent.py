"""Training runs opened for evaluation. What users of the commands see is in tests/scripts."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import qrl
from qrl.agents.errors import RunError
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.runs.run import Run
from qrl.envs.errors import DatasetError
from tests.agents.worlds import corridor, graph_settings, small_settings


def test_what_is_opened(trained: Path) -> None:
    opened = TrainedAgent.open(trained, seed=4)
    assert (opened.name, opened.notices, opened.agent.seed) == ("iqe", [], 4)
    origin = {"run": str(trained), "model": "iqe-maxmean", "learner": "mbold", "step": 300, "complete": True}
    assert opened.origin == origin
    observations = opened.dataset.observations
    np.testing.assert_array_equal(
        opened.agent.all_steps_to_goal(observations), qrl.load(trained).all_steps_to_goal(observations)
    )
    assert TrainedAgent.open(Run.open(trained)).checkpoint == opened.checkpoint


def test_notices(trained: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "iqe"))
    (run / "COMPLETE").unlink()
    assert TrainedAgent.open(run).notices == [f"{run} is not complete: this is its checkpoint at step 300 of 300"]
    other = corridor(3, "traps")
    assert TrainedAgent.open(trained, dataset=other).notices == [f"{trained} was trained on other data than {other!r}"]
    other.save(run / "dataset.npz")
    with pytest.raises(DatasetError, match=r"dataset\.npz has changed since .*iqe was trained on it"):
        TrainedAgent.open(run)


def test_an_agent_without_distances_is_noticed(tmp_path: Path) -> None:
    Run.start(small_settings(tmp_path / "cloned", learner={"name": "gcbc"}))
    incomplete, notice = TrainedAgent.open(tmp_path / "cloned").notices
    assert "not complete" in incomplete
    assert notice == (
        f"{tmp_path / 'cloned'} was trained by gcbc, which learns scores of actions: it has no distances to compare "
        "with exact ones"
    )


def test_graphs_have_no_agents(tmp_path: Path) -> None:
    Run.start(graph_settings(tmp_path / "graph"))
    with pytest.raises(RunError, match="is a run of train-graph, not of train-agent"):
        TrainedAgent.open(tmp_path / "graph")


def test_the_name_of_a_reference_is_not_ambiguous(trained: Path, tmp_path: Path) -> None:
    assert TrainedAgent.open(shutil.copytree(trained, tmp_path / "oracle")).name == "oracle (run)"


def test_results_go_to_the_tensorboard_of_the_run(trained: Path, tmp_path: Path) -> None:
    opened = TrainedAgent.open(shutil.copytree(trained, tmp_path / "iqe"))
    evaluation = opened.evaluate(Evaluator(opened.dataset, "paper", 5), references=False)
    assert evaluation.references == []
    assert (evaluation.model, evaluation.step) == ("iqe-maxmean", 300)
    opened.log(evaluation.results)
    events = EventAccumulator(str(opened.run.tensorboard)).Reload()
    (event,) = events.Tensors("evaluation/paper")
    assert event.step == 300
    assert f"{evaluation.success_rate:.3f}" in event.tensor_proto.string_val[0].decode()
