"""OGBench's file layout: against files written by hand, and round trips."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qrl
from qrl.envs import ogbench_exchange
from qrl.envs.errors import DatasetError
from qrl.envs.ogbench_exchange import from_ogbench, to_ogbench
from qrl.scripts.collect_dataset import main as collect_dataset
from qrl.scripts.inspect_dataset import main as inspect_dataset

# Two trajectories: of two actions, and of one. The actions of the last rows mean nothing.
BY_HAND: dict[str, Any] = {
    "observations": np.arange(10, dtype=np.float32).reshape(5, 2),
    "actions": np.array([1, 0, 7, 2, 9]),
    "terminals": np.array([0, 0, 1, 0, 1], np.float32),
}


def test_a_file_by_hand(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", **BY_HAND, qpos=np.zeros(3))
    dataset = from_ogbench(tmp_path / "x.npz", num_actions=3)
    assert dataset.lengths.tolist() == [2, 1]
    assert dataset.actions.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(dataset.observations[dataset.states], BY_HAND["observations"])
    assert (dataset.goals == -1).all()
    images = BY_HAND | {"observations": np.zeros((5, 4, 4, 3), np.uint8)}
    np.savez(tmp_path / "images.npz", **images)
    assert from_ogbench(tmp_path / "images.npz", num_actions=3).observations.shape[1] == 48


def test_round_trip(tmp_path: Path) -> None:
    dataset = qrl.collect("traps", trajectories=33, max_steps=20)
    paths = to_ogbench(dataset, tmp_path / "traps.npz")
    assert [path.name for path in paths] == ["traps.npz", "traps-val.npz"]
    train, validation = (from_ogbench(path, num_actions=4) for path in paths)
    assert (train.num_episodes, validation.num_episodes) == (30, 3)
    np.testing.assert_array_equal(np.concatenate([train.actions, validation.actions]), dataset.actions)
    np.testing.assert_array_equal(np.concatenate([train.lengths, validation.lengths]), dataset.lengths)
    rows = [part.observations[part.states] for part in (train, validation)]
    np.testing.assert_array_equal(np.concatenate(rows), dataset.observations[dataset.states])
    with np.load(tmp_path / "traps-val.npz") as stored:
        assert stored["terminals"].sum() == 3
    assert [path.name for path in to_ogbench(dataset.first(2), tmp_path / "small.npz")] == ["small.npz"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"actions": np.zeros((5, 2), np.float32)},
            "2-dimensional float32, that is, continuous; qrl learns from discrete",
        ),
        ({"actions": np.zeros(5, np.float32)}, "1-dimensional float32, that is, continuous"),
        ({"terminals": np.array([0, 0, 1, 0, 0])}, "the last terminal must be 1"),
        ({"terminals": np.zeros(5)}, "the last terminal must be 1"),
        ({"terminals": np.array([0, 1, 1, 0, 1])}, "trajectory 1 has a single row"),
        ({"actions": np.zeros(4, int)}, "one row per step"),
        ({"terminals": np.float64(1)}, "'terminals' is damaged"),
        ({"observations": np.array(["a"] * 5)}, "'observations' is not in NumPy's format"),
        ({"observations": np.zeros((5, 2), complex)}, "'observations' is not in NumPy's .* real numbers"),
    ],
)
def test_bad_files(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "x.npz", **BY_HAND | changes)
    with pytest.raises(DatasetError, match=message):
        from_ogbench(tmp_path / "x.npz", num_actions=10)


def test_missing_large_and_damaged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "x.npz", observations=np.zeros((2, 2)))
    with pytest.raises(DatasetError, match="the array 'actions' is missing"):
        from_ogbench(tmp_path / "x.npz", num_actions=2)
    np.savez_compressed(tmp_path / "x.npz", **BY_HAND)
    monkeypatch.setattr(ogbench_exchange, "MAX_BYTES", 100)
    with pytest.raises(DatasetError, match=r"'observations' has 168 bytes, more than 100"):
        from_ogbench(tmp_path / "x.npz", num_actions=2)
    (tmp_path / "torn.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:100])
    with pytest.raises(DatasetError, match="damaged or not an"):
        from_ogbench(tmp_path / "torn.npz", num_actions=2)


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert collect_dataset(["d.npz", "layout=traps", "trajectories=22"]) == 0
    assert inspect_dataset(["d.npz", "--to-ogbench", "o.npz"]) == 0
    assert "o.npz, o-val.npz" in capsys.readouterr().out
    assert inspect_dataset(["d.npz", "--to-ogbench", "o.npz"]) == 2
    assert collect_dataset(["back.npz", "--from-ogbench", "o.npz", "--num-actions", "4"]) == 0
    assert "20 episodes" in capsys.readouterr().out
    for arguments, message in (
        (["--from-ogbench", "o.npz"], "needs --num-actions"),
        (["--num-actions", "4"], "needs --num-actions"),
        (["--from-ogbench", "o.npz", "--num-actions", "4", "seed=1"], "stays unchanged"),
        (["--from-ogbench", "o.npz", "--num-actions", "4", "--from-minari", "x-v0"], "import one dataset"),
        (["--from-ogbench", "o.npz", "--num-actions", "2"], "actions: all values must be from 0 to 1"),
    ):
        assert collect_dataset(["other.npz", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_an_export_without_validation_episodes_deletes_those_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for episodes, files in ((22, ["d.npz", "o-val.npz", "o.npz"]), (10, ["d.npz", "o.npz"])):
        assert collect_dataset(["d.npz", "layout=traps", f"trajectories={episodes}", "--force"]) == 0
        assert inspect_dataset(["d.npz", "--to-ogbench", "o.npz", "--force"]) == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == files
