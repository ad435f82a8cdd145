import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qrl.envs.dataset import Dataset
from qrl.scripts.collect_dataset import main as collect_dataset
from qrl.scripts.evaluate_planning import main as evaluate_planning
from qrl.scripts.inspect_dataset import main as inspect_dataset
from qrl.scripts.list_worlds import main
from qrl.scripts.train_agent import main as train_agent
from tests.envs.worlds import toys

TOY = "from qrl import register_world\n" + Path(toys.__file__).read_text().replace(
    "def ring(", '@register_world("ring", RingSettings)\ndef ring('
)


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].split() == ["name", "world", "origin"]
    assert any(line.startswith("layout ") for line in lines)
    assert lines[-1] == "list-worlds NAME shows the keys of one"
    assert captured.err == ""
    assert main(["layot"]) == 2
    assert "error: unknown world 'layot' (did you mean 'layout'?)" in capsys.readouterr().err


@pytest.fixture
def ring_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_registry: None) -> Iterator[str]:
    """A module with a world in the working directory."""
    (tmp_path / "ring_world.py").write_text(TOY)
    monkeypatch.chdir(tmp_path)
    yield "ring_world"
    sys.modules.pop("ring_world", None)


def test_one_world_of_a_plugin(ring_world: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ring", "--plugin", ring_world]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ring (from ring_world)\nA ring with a step in one direction, and one that stays.\n")
    assert "\n  world.states " in out
    assert "world.name" not in out


def test_its_keys_are_listed_by_help(ring_world: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command, prefix in ((collect_dataset, ""), (train_agent, "collector.")):
        with pytest.raises(SystemExit):
            command(["--plugin", ring_world, "--help", f"{prefix}world=ring"])
        out = capsys.readouterr().out
        assert f"\n  {prefix}world.states " in out


def test_from_data_to_evaluation(ring_world: str, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = ["--plugin", ring_world]
    assert collect_dataset(["d.npz", *plugin, "world.states=7", "world=ring", "trajectories=30"]) == 0
    dataset = Dataset.load("d.npz")
    assert dataset.world is not None
    assert dataset.world.num_states == 7
    assert inspect_dataset(["d.npz", *plugin]) == 0
    out = capsys.readouterr().out
    assert "ring (fault='none', states=7): 7 states, deterministic, strongly connected" in out
    assert inspect_dataset(["d.npz", *plugin, "--picture", "p.png"]) == 2
    small = [
        "model.params.hidden_sizes=[8]",
        "model.params.latent_size=16",
        "learner.min_steps=2",
        "learner.epochs=0.01",
    ]
    assert train_agent([*plugin, "dataset=d.npz", "run=r", "compile=off", *small]) == 0
    assert "success_rate" in capsys.readouterr().out
    assert evaluate_planning([*plugin, "r", "--pictures", "pictures"]) == 0
    captured = capsys.readouterr()
    assert "oracle" in captured.out
    assert {path.stem for path in Path("pictures").iterdir()} == {"estimates", "success"}
    assert evaluate_planning([*plugin, "r", "--gif", "task.gif"]) == 2
    assert "ring has no environment that renders frames" in capsys.readouterr().err


def test_mistakes(ring_world: str, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str) -> str:
        assert collect_dataset(["d.npz", *arguments]) == 2
        return capsys.readouterr().err

    assert "unknown world 'ring'" in refused("world=ring")
    plugin = ("--plugin", ring_world)
    assert "name the world: world=NAME" in refused(*plugin, "world.states=3")
    assert "unknown key 'world.sates' (did you mean 'world.states'?)" in refused(*plugin, "world=ring", "world.sates=3")
    assert "layout and world both say where data comes from: remove layout=traps" in refused(
        *plugin, "world=ring", "layout=traps"
    )
    assert "no goal can be reached from the start 1" in refused(*plugin, "world=ring", "world.fault=unreachable")
    assert not Path("d.npz").exists()
    Path("c.yaml").write_text("world: ring\n")
    assert collect_dataset(["d.npz", *plugin, "--config", "c.yaml", "world.states=9", "trajectories=2"]) == 0
    assert len(Dataset.load("d.npz").observations) == 9
