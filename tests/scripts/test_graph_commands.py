"""collect-graph and train-graph as a user calls them."""

from pathlib import Path

import numpy as np
import pytest

from qrl.envs.graphs.dataset import GraphDataset
from qrl.scripts.collect_graph import main as collect
from qrl.scripts.train_graph import main as train

RING = "# a ring\n" + "".join(f"{10 * node} {10 * ((node + 1) % 30)}\n" for node in range(30)) + "0 0\n0 10\n"


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_edge_list(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ring.txt").write_text(RING)
    np.save("features.npy", np.random.default_rng(0).normal(size=(30, 4)))
    arguments = [
        "kind=edge-list",
        "file=ring.txt",
        "landmarks=10",
        "pairs=200",
        "validation_pairs=40",
        "feature_size=4",
    ]
    assert collect(["ring.npz", *arguments, "features=features.npy"]) == 0
    out = capsys.readouterr().out
    assert "left out: 1 self-loops, 1 repeated edges" in out
    assert "0.0% in training" in out
    data = GraphDataset.load("ring.npz")
    assert data.names.tolist() == list(range(0, 300, 10))
    assert (data.header.self_loops, data.header.repeated_edges, data.header.num_edges) == (1, 1, 30)
    assert "ring.txt" in repr(data)
    assert collect(["ring.npz", *arguments, "features=features.npy"]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_random_graph_from_data_to_a_resumed_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert collect(["block.npz", "kind=random-block", "nodes=40", "--picture", "block.png"]) == 0
    assert Path("block.png").stat().st_size > 5000
    arguments = ["--config", "graphs/random-quick", "dataset=block.npz", "learner.epochs=1", "learner.min_steps=30"]
    arguments += ["model.width=16", "compile=off"]
    assert train([*arguments, "--dry-run"]) == 0
    assert "steps       30" in capsys.readouterr().out
    assert train([*arguments, "run=first"]) == 0
    assert "complete: first, loss" in capsys.readouterr().out
    assert train(["--resume", "first"]) == 0
    assert train(["--resume", "first", "learner.lr=1"]) == 2
    assert "cannot change settings: learner.lr" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kind=edge-list"], "needs the file of the graph"),
        (["kind=edge-list", "file=nowhere.txt"], "nowhere.txt cannot be read"),
        (["kind=edge-list", "file=x.txt", "--picture", "x.png"], "small random graph"),
        (["kind=random-dens"], "kind"),
        (["fraction=0.00000001"], "leaves none on one side"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert collect(["out.npz", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().iterdir())
