"""train-graph as a user calls it."""

from pathlib import Path

import pytest

from qrl.agents.evaluation.graph_metrics import error_of_mean
from qrl.envs.graphs.dataset import GraphDataset
from qrl.scripts.collect_graph import main as collect
from qrl.scripts.train_graph import main as train


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_random_graph_from_data_to_a_resumed_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert collect(["block.npz", "kind=random-block", "nodes=40"]) == 0
    arguments = ["--config", "graphs/random-quick", "dataset=block.npz", "learner.epochs=1", "learner.min_steps=10"]
    arguments += ["model.width=16", "compile=off"]
    assert train([*arguments, "--dry-run"]) == 0
    assert "steps       10" in capsys.readouterr().out
    assert train([*arguments, "run=first"]) == 0
    printed = capsys.readouterr()
    assert "complete: first, loss" in printed.out
    data = GraphDataset.load("block.npz")
    error = error_of_mean(data.training_distances, data.validation_distances, 0.9)
    assert f"predicting the mean of gamma^d for every pair has mse {error:.4g};" in printed.err
    assert "  kind: random-block\n" in Path("first/config.yaml").read_text()
    assert "  nodes: 40\n" in Path("first/config.yaml").read_text()
    assert train(["--resume", "first"]) == 0
    assert train(["--resume", "first", "learner.lr=1"]) == 2
    assert "cannot change settings: learner.lr" in capsys.readouterr().err
    assert train(["--resume", "first", "learner.min_steps=12"]) == 0
    assert "steps 10 to 12" in capsys.readouterr().out


def test_runs_of_train_agent_are_refused(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(["--resume", str(trained)]) == 2
    assert "is a run of train-agent, not of train-graph" in capsys.readouterr().err
