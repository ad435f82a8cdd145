"""The commands as a user calls them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.scripts.collect_dataset import main as collect_dataset
from qrl.scripts.inspect_dataset import main as inspect_dataset


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def test_collect_and_inspect(capsys: pytest.CaptureFixture[str]) -> None:
    assert collect_dataset(["data/d.npz", "layout=traps", "--config", "demo", "seed=4"]) == 0
    expected = collect(CollectorSettings(layout="traps", trajectories=300, seed=4))
    assert Dataset.load("data/d.npz").content_hash == expected.content_hash
    assert f"wrote data/d.npz: 300 episodes, {expected.num_transitions:,} transitions" in capsys.readouterr().out
    assert inspect_dataset(["data/d.npz", "--picture", "data/p.png"]) == 0
    out = capsys.readouterr().out
    assert "data/d.npz (valid)" in out
    assert expected.content_hash in out
    assert Path("data/p.png").read_bytes().startswith(b"\x89PNG")


def test_minari_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("minari", reason='Minari is not installed: pip install "qrl[minari]"')
    collect_dataset(["d.npz", "layout=corridor", "trajectories=5"])
    assert inspect_dataset(["d.npz", "--to-minari", "doors/corridor-v0"]) == 0
    assert collect_dataset(["e.npz", "--from-minari", "doors/corridor-v0"]) == 0
    assert Dataset.load("e.npz").states.tolist() == Dataset.load("d.npz").states.tolist()
    assert collect_dataset(["f.npz", "--from-minari", "doors/corridor-v0", "seed=1"]) == 2
    assert "leave out" in capsys.readouterr().err


def test_a_users_layout_file() -> None:
    Path("mine.txt").write_text("#####\n#S>G#\n#####\n")
    assert collect_dataset(["d.npz", "layout=mine.txt", "trajectories=3"]) == 0
    layout = Dataset.load("d.npz").layout
    assert layout is not None
    assert layout.name == "mine.txt"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["d.npz", "sead=3"], "unknown key 'sead' (did you mean 'seed'?)"),
        (["d.npz", "epsilon=1.5"], "epsilon: input should be less than or equal to 1 (got 1.5)"),
        (["d.npz", "trajectories=0"], "trajectories: input should be greater than or equal to 1"),
        (["d.npz", "trajectories=1e30"], "trajectories: unable to parse"),
        (["d.npz", "max_steps=100000000"], "max_steps: input should be less than or equal to 10000"),
        (["d.npz", "seed=-1"], "seed: input should be greater than or equal to 0"),
        (["d.npz", "layout=nowhere"], "unknown layout 'nowhere'; known: corridor, six-rooms, traps"),
        (["d.npz", "--config", "nothing"], "unknown config 'nothing'"),
        (["d.npz", "stray"], "'stray' is not of the form key=value"),
        (["seed=3"], "must end in .npz"),
        (["there.npz"], "there.npz exists already"),
        (["there.npz/d.npz"], "is not a folder"),
    ],
)
def test_mistakes_are_told_and_leave_nothing(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there.npz").write_text("precious")
    assert collect_dataset(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert os.listdir() == ["there.npz"]
    assert Path("there.npz").read_text() == "precious"


def test_force_overwrites() -> None:
    Path("d.npz").write_text("old")
    assert collect_dataset(["--force", "d.npz", "layout=corridor", "trajectories=2"]) == 0
    assert Dataset.load("d.npz").num_episodes == 2


def test_inspecting_nonsense(capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.npz").write_text("hello")
    assert inspect_dataset(["text.npz"]) == 2
    assert "text.npz is damaged or not a qrl-trajectories file" in capsys.readouterr().err
    assert inspect_dataset(["absent.npz"]) == 2
    collect_dataset(["d.npz", "layout=corridor", "trajectories=2"])
    assert inspect_dataset(["d.npz", "--picture", "d.npz"]) == 2
    assert "must end in .png" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough() -> None:
    """As in `list-models | head -1`: no traceback."""
    command = Path(sys.executable).with_name("list-models")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        run = subprocess.run([command], stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (141, "")


def test_damage_is_reported_without_a_traceback() -> None:
    collect_dataset(["d.npz", "layout=corridor", "trajectories=2"])
    content = bytearray(Path("d.npz").read_bytes())
    content[len(content) // 2] ^= 1
    Path("d.npz").write_bytes(content)
    command = Path(sys.executable).with_name("inspect-dataset")
    run = subprocess.run([command, "d.npz"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("error: d.npz")
    assert "Traceback" not in run.stderr
