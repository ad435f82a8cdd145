"""A learner that learns scores of actions and no distances, from training to the report."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import qrl
from qrl.agents.errors import LearnerError
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.runs.run import Run
from qrl.scripts.compare_agents import main as compare_agents
from qrl.scripts.evaluate_planning import main as evaluate_planning
from tests.agents.runs.running import logged_rows
from tests.agents.worlds import PLAIN, SMALL, other_notices, without_layout

SETTINGS = {
    "model.params": SMALL,
    "learner.min_steps": 60,
    "learner.epochs": 0.01,
    "learner.batch_size": 64,
    "learner.lr": 1e-2,
    "evaluate_every": 30,
    "compile": "off",
}
NOTICE = "cloned was trained by gcbc, which learns scores of actions: it has no distances to compare with exact ones"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of gcbc and one of mbold on the same data. Read-only."""
    path = tmp_path_factory.mktemp("scores")
    dataset = qrl.collect("traps", trajectories=60, max_steps=60)
    plain = {f"learner.{key}": value for key, value in PLAIN.items()}
    for name, learner, more in (("cloned", "gcbc", {}), ("learned", "mbold", plain)):
        run = qrl.train(dataset, model="iqe-sum", learner=learner, out=path / name, settings=SETTINGS | more)
        assert run.settings.learner.name == learner
    return path


@pytest.fixture(autouse=True)
def working_directory(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cloned", "learned"):
        (tmp_path / name).symlink_to(folder / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISPLAY", raising=False)


def test_training_scores_plans_but_no_distances() -> None:
    for row in logged_rows(Path("cloned")):
        evaluated = row["step"] in ("30", "60")
        assert bool(row["success_rate"]) == bool(row["ranking_accuracy"]) == evaluated
        assert row["absolute_error"] == row["signed_error"] == ""
    assert "absolute_error" not in json.loads(Path("cloned/COMPLETE").read_text())
    assert "absolute_error" in json.loads(Path("learned/COMPLETE").read_text())


def test_the_agent_scores_actions() -> None:
    agent, observations = qrl.load("cloned"), Run.open("cloned").dataset.observations
    scores = agent.action_scores(observations[:5, None], observations[None, 5:9])
    assert scores.shape == (5, 4, 4)
    np.testing.assert_allclose(np.exp(scores).sum(-1), 1, rtol=1e-5)
    for state in range(5):
        assert agent.act(observations[state], observations[7]) == scores[state, 2].argmax()
    for query in (agent.distance, agent.steps_to_goal):
        with pytest.raises(LearnerError, match="learns scores of actions, not distances; ask for action_scores"):
            query(observations[0], observations[1])
    with pytest.raises(LearnerError, match="not distances"):
        agent.all_steps_to_goal(observations)


def test_evaluating(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate_planning(["cloned", "--json", "r.json", "--pictures", "p", "--gif", "task.gif"]) == 0
    captured = capsys.readouterr()
    assert other_notices(captured.err.splitlines()) == [f"note: {NOTICE}"]
    assert {Path(name).stem for name in os.listdir("p")} == {"success"}  # a distance map would have nothing to show
    assert "wrote p/success.png" in captured.out
    assert "distance-map" not in captured.out
    results = json.loads(Path("r.json").read_text())
    assert results["distances"] is results["axioms"] is None
    assert results["references"]["oracle"]["distances"]["reachable"]["absolute_error"] == 0
    assert 0 < results["ranking_accuracy"] < 1
    assert results["all_pairs"]["success_rate"] > 0
    assert (results["learner"], results["model"], other_notices(results["notices"])) == (
        *("gcbc", "iqe-sum"),
        [NOTICE],
    )
    rows = {line[:50].strip(): line[50:].split() for line in captured.out.split("\n\n")[0].splitlines()}
    assert rows["|estimate - exact|"][0] == "-"
    assert rows["ranking accuracy"][0] == f"{results['ranking_accuracy']:.3f}"
    (event,) = EventAccumulator("cloned/tensorboard").Reload().Tensors("evaluation/exhaustive")
    logged = event.tensor_proto.string_val[0].decode()
    assert "ranking accuracy" in logged
    assert "|estimate - exact|" not in logged.split("\n\n")[0]


def test_which_metrics_need_distances() -> None:
    cloned, learned = qrl.evaluate("cloned"), qrl.evaluate("learned")
    assert other_notices(cloned.notices) == [NOTICE]
    assert other_notices(learned.notices) == []
    for metric in METRICS:
        assert (cloned[metric.key] is None) == (metric.needs_distances or learned[metric.key] is None), metric.key
    assert any(metric.needs_distances and learned[metric.key] is not None for metric in METRICS)


def test_the_papers_protocol() -> None:
    evaluation = qrl.evaluate("cloned", protocol="paper", episodes=3)
    assert evaluation["tasks"] == 3
    assert evaluation["distances.reachable.absolute_error"] is None


def test_comparing(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_agents(["r.html", "cloned", "learned"]) == 0
    assert other_notices(capsys.readouterr().err.splitlines()) == [f"note: {NOTICE}"]
    page = Path("r.html").read_text()
    assert f"<b>Note:</b> {NOTICE}." in page
    assert "<p>Model iqe-sum, trained by gcbc for 60 steps.</p>" in page
    cloned, learned = page.split(">cloned</h2>")[1].split(">learned</h2>")
    assert cloned.count("<img") == 1  # the task
    assert learned.split("<h2")[0].count("<img") == 3  # also the map and the estimates


def test_data_without_a_layout(capsys: pytest.CaptureFixture[str]) -> None:
    data = without_layout(Run.open("cloned").dataset)
    run = qrl.train(data, model="dot", learner="gcbc", out="own", settings={**SETTINGS, "learner.min_steps": 3})
    assert {key for key, value in qrl.evaluate(run).results.values.items() if value is not None} <= {
        metric.key for metric in METRICS if metric.key.startswith("validation.")
    }
    assert evaluate_planning(["own"]) == 0
    assert "note: there is no world to plan in" in capsys.readouterr().err
