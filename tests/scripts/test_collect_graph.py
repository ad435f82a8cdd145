"""collect-graph as a user calls it."""

from pathlib import Path

import numpy as np
import pytest

from qrl.envs.graphs.dataset import GraphDataset
from qrl.scripts.collect_graph import main as collect_graph

RING = "# a ring\n" + "".join(f"{10 * node} {10 * ((node + 1) % 30)}\n" for node in range(30)) + "0 0\n0 10\n"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_edge_list(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ring.txt").write_text(RING)
    np.save("features.npy", np.random.default_rng(0).normal(size=(30, 4)))
    arguments = ["ring.npz", "kind=edge-list", "file=ring.txt", "landmarks=10", "pairs=200", "validation_pairs=40"]
    arguments += ["feature_size=4", "features=features.npy"]
    assert collect_graph(arguments) == 0
    out = capsys.readouterr().out
    assert "unreachable pairs: 0.0% in training, 0.0% in validation" in out
    assert "dropped: 1 self-loops, 1 repeated edges" in out
    dataset = GraphDataset.load("ring.npz")
    assert dataset.names.tolist() == list(range(0, 300, 10))
    assert (dataset.header.self_loops, dataset.header.repeated_edges, dataset.header.num_edges) == (1, 1, 30)
    assert "ring.txt" in repr(dataset)
    assert collect_graph(arguments) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_random_graph_with_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    assert collect_graph(["block.npz", "kind=random-block", "nodes=20", "--picture", "block.png"]) == 0
    assert GraphDataset.load("block.npz").num_nodes == 20
    assert Path("block.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.endswith("wrote block.png\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kind=edge-list"], "kind=edge-list needs an edge list"),
        (["kind=edge-list", "file=nowhere.txt"], "nowhere.txt cannot be read"),
        (["kind=edge-list", "file=x.txt", "--picture", "x.png"], "--picture plots all distances of a random graph"),
        (["kind=random-dens"], "kind: input should be 'random-dense'"),
        (["fraction=0.00000001"], "leaves a split empty"),
    ],
)
def test_mistakes_are_reported_and_leave_no_files(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert collect_graph(["out.npz", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().iterdir())
