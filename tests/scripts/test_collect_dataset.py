"""collect-dataset as a user calls it."""

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


def test_collect(capsys: pytest.CaptureFixture[str]) -> None:
    assert collect_dataset(["data/d.npz", "layout=traps", "--config", "demo", "seed=4"]) == 0
    expected = collect(CollectorSettings(layout="traps", trajectories=300, seed=4))
    assert Dataset.load("data/d.npz").content_hash == expected.content_hash
    assert capsys.readouterr().out == f"wrote data/d.npz: 300 episodes, {expected.num_transitions:,} transitions\n"


def test_import_from_minari(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("minari", reason="Minari is not installed: pip install -e '.[minari]'")
    collect_dataset(["d.npz", "layout=corridor", "trajectories=5"])
    assert inspect_dataset(["d.npz", "--to-minari", "doors/corridor-v0"]) == 0
    assert collect_dataset(["e.npz", "--from-minari", "doors/corridor-v0"]) == 0
    assert Dataset.load("e.npz").states.tolist() == Dataset.load("d.npz").states.tolist()
    assert collect_dataset(["f.npz", "--from-minari", "doors/corridor-v0", "seed=1"]) == 2
    assert "remove --config and key=value" in capsys.readouterr().err
    assert not Path("f.npz").exists()


def test_a_layout_file() -> None:
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
        (["d.npz", "layout=nowhere.txt"], "layout file nowhere.txt does not exist"),
        (["d.npz", "--config", "nothing"], "unknown config 'nothing'"),
        (["d.npz", "stray"], "'stray' is not of the form key=value"),
        (["seed=3"], "must end in .npz"),
        (["existing.npz"], "existing.npz exists already"),
        (["existing.npz/d.npz"], "is not a folder"),
    ],
)
def test_mistakes_are_reported_and_leave_no_files(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("existing.npz").write_text("precious")
    assert collect_dataset(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert os.listdir() == ["existing.npz"]
    assert Path("existing.npz").read_text() == "precious"


def test_force_overwrites() -> None:
    Path("d.npz").write_text("old")
    assert collect_dataset(["--force", "d.npz", "layout=corridor", "trajectories=2"]) == 0
    assert Dataset.load("d.npz").num_episodes == 2


@pytest.mark.parametrize("script", ["collect_dataset", "collect_graph", "inspect_dataset"])
def test_slow_imports_happen_inside_main(script: str) -> None:
    """There, an interrupt is handled."""
    program = f"import sys, qrl.scripts.{script}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "gymnasium", "qrl.envs"} & set(run.stdout.split())
