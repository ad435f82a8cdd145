"""inspect-dataset as a user calls it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.scripts.inspect_dataset import main as inspect_dataset


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def save_collected() -> Dataset:
    dataset = collect(CollectorSettings(layout="corridor", trajectories=2))
    dataset.save("d.npz")
    return dataset


def test_card_and_picture(capsys: pytest.CaptureFixture[str]) -> None:
    dataset = save_collected()
    assert inspect_dataset(["d.npz", "--picture", "data/p.png"]) == 0
    out = capsys.readouterr().out
    assert "d.npz (valid)" in out
    assert dataset.content_hash in out
    assert Path("data/p.png").read_bytes().startswith(b"\x89PNG")


def test_only_facts_about_data_without_goals_and_layout(capsys: pytest.CaptureFixture[str]) -> None:
    Dataset.from_arrays(np.eye(4), [0, 1, 0], [3], num_actions=2).save("d.npz")
    assert inspect_dataset(["d.npz"]) == 0
    out = capsys.readouterr().out
    assert "4 distinct among 4 observations" in out
    for claim in ("reached their goal", "step cap", "visited", "layout", "door"):
        assert claim not in out


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The error message of a call that must fail without printing or writing anything."""
    files = sorted(Path().rglob("*"))
    assert inspect_dataset(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sorted(Path().rglob("*")) == files
    return captured.err


def test_a_picture_needs_a_layout(capsys: pytest.CaptureFixture[str]) -> None:
    Dataset.from_arrays(np.eye(4), [0, 1, 0], [3], num_actions=2).save("d.npz")
    assert "d.npz has no map" in refused(["d.npz", "--picture", "p.png"], capsys)


def test_export_needs_minari(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    save_collected()
    monkeypatch.setitem(sys.modules, "minari", None)
    arguments = ["d.npz", "--picture", "p.png", "--to-minari", "doors-v0"]
    assert "pip install -e '.[minari]'" in refused(arguments, capsys)


def test_export_needs_a_new_id(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("minari", reason="Minari is not installed: pip install -e '.[minari]'")
    save_collected()
    assert inspect_dataset(["d.npz", "--to-minari", "doors-v0"]) == 0
    capsys.readouterr()
    assert "already exists" in refused(["d.npz", "--to-minari", "doors-v0"], capsys)
    assert "is not a Minari id" in refused(["d.npz", "--to-minari", "doors"], capsys)


def test_bad_files_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.npz").write_text("hello")
    assert "text.npz is damaged or not a qrl-trajectories file" in refused(["text.npz"], capsys)
    assert "absent.npz cannot be read" in refused(["absent.npz"], capsys)
    save_collected()
    assert "must end in .png or .pdf or .svg" in refused(["d.npz", "--picture", "d.npz"], capsys)


def test_damage_is_reported_without_a_traceback() -> None:
    save_collected()
    content = bytearray(Path("d.npz").read_bytes())
    content[len(content) // 2] ^= 1
    Path("d.npz").write_bytes(content)
    command = Path(sys.executable).with_name("inspect-dataset")
    run = subprocess.run([command, "d.npz"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("error: d.npz")
    assert "Traceback" not in run.stderr
