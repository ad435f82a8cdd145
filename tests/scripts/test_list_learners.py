import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qrl.scripts.list_learners import main
from qrl.scripts.train_agent import main as train_agent
from tests.agents.learners import toys

TOY = "from qrl import register_learner\n" + Path(toys.__file__).read_text().replace(
    "class Toy(", '@register_learner("toy", ToySettings)\nclass Toy('
)


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].split() == ["name", "objective", "models", "learns", "command", "origin"]
    assert any(line.startswith("mbold ") for line in lines)
    assert lines[-1] == "list-learners NAME shows the objective and the keys of one"
    assert captured.err == ""


def test_one_learner(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["qrl"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("qrl (from qrl)\nQuasimetric RL: push all pairs apart")
    assert "\n  learner.epsilon " in out
    assert main(["qlr"]) == 2
    assert "error: unknown learner 'qlr' (did you mean 'qrl'?)" in capsys.readouterr().err


@pytest.fixture
def toy_learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_registry: None) -> Iterator[str]:
    """A module with a learner in the working directory."""
    (tmp_path / "toy_learner.py").write_text(TOY)
    monkeypatch.chdir(tmp_path)
    yield "toy_learner"
    sys.modules.pop("toy_learner", None)


def test_the_plugin_is_loaded_first(toy_learner: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["toy", "--plugin", toy_learner]) == 0
    out = capsys.readouterr().out
    assert out.startswith("toy (from toy_learner)\nRegression on the hindsight steps of future goals.\n")
    assert "\n  learner.weight " in out


def test_its_keys_are_listed_by_help(toy_learner: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train_agent(["--plugin", toy_learner, "--help", "learner.name=toy"])
    keys = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  learner.")}
    assert {"learner.name", "learner.lr", "learner.weight"} <= keys
    assert "learner.polyak" not in keys


def test_plugins_that_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from qrl.agents.learners.registry import LEARNERS

    assert main(["--plugin", "no_such_module"]) == 2
    assert "the plugin no_such_module could not be loaded" in capsys.readouterr().err
    monkeypatch.setattr(LEARNERS, "_failures", {"torn 1.2 (torn_module)": "ImportError: torn"})
    assert main([]) == 0
    captured = capsys.readouterr()
    assert captured.err == "warning: the plugin torn 1.2 (torn_module) could not be loaded: ImportError: torn\n"
    assert "\nmbold " in captured.out
