"""Learners that cannot train what they are given: a message, exit status 2, and nothing left behind."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from qrl import register_learner
from qrl.agents.learners import contrastive
from qrl.agents.runs.run import Run
from qrl.envs.dataset import Dataset
from qrl.scripts.train_agent import main as train_agent
from qrl.scripts.train_graph import main as train_graph
from tests.agents.learners.toys import ArrayState, BareParameter, NeedsClosures, PlainNumbers, Raises, ToySettings
from tests.agents.runs.running import checkpoint_bytes
from tests.agents.worlds import every_transition, small_settings

SMALL = [
    *("collector.layout=corridor", "collector.trajectories=20", "learner.epochs=0.01", "learner.batch_size=32"),
    *("learner.min_steps=3", "model.width=16", "model.latent_size=16", "compile=off", "threads=1", "run=r"),
]


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The message of train-agent, which leaves nothing behind."""
    before = sorted(os.listdir())
    assert train_agent([*SMALL, *arguments]) == 2
    assert sorted(os.listdir()) == before
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("error: ").rstrip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["learner.name=qrl", "model.name=dot"],
            "learner qrl: it needs a guaranteed quasimetric, and DotProductQModel is none; choose another model.name "
            "(list-models shows which are)",
        ),
        (
            ["learner.name=mad", "model.name=unconstrained-state"],
            "learner mad: the goals of its model must be of the kind state-action, and those of UnconstrainedQModel "
            "are of the kind state; choose another model.name (list-models shows them)",
        ),
        (["learner.name=regression"], "settings: learner.name: regression is for train-graph, not for train-agent"),
        (["learner.name=null"], "settings: learner.name: input should be a valid string (got None)"),
    ],
)
def test_learners_that_do_not_fit(arguments: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, *arguments) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learner.epsilon=0.1"], "settings: learner.epsilon belongs to qrl; mbold has learner.batch_size, learner."),
        (
            ["learner.name=qrl", "learner.goals.future=1"],
            "settings: learner.goals.future belongs to mbold, mad, cmd, tmd, iql, gcbc; qrl has learner.batch_size, ",
        ),
        (["learner.name=qrl", "learner.epsilonn=1"], "settings: unknown key 'learner.epsilonn' (did you mean "),
        (["learner.name=qlr"], "settings: unknown learner 'qlr' (did you mean 'qrl'?); known: cmd, gcbc, iql, mad, "),
    ],
)
def test_keys_and_names(arguments: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, *arguments).startswith(message)


def test_a_learner_of_the_other_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert train_graph(["learner.name=qrl", "run=r"]) == 2
    assert capsys.readouterr().err == "error: settings: learner.name: qrl is for train-agent, not for train-graph\n"
    assert os.listdir() == []


# Bounds


def test_bounds_of_stochastic_data(capsys: pytest.CaptureFixture[str]) -> None:
    """Action 1 of state 0 leads to state 1, then to state 2."""
    Dataset.from_arrays(np.array([[0], [1], [0], [2]]), [1, 0, 1], [3], num_actions=2).save("lucky.npz")
    for bound in ("trajectory", "graph"):
        message = error_of(capsys, "dataset=lucky.npz", f"learner.bound={bound}")
        assert message.startswith("learner.bound: the world is stochastic, so that no path in the data bounds ")
        assert "action 1 of state 0 leads to 2 different states; use bound=none" in message


def test_bounds_of_single_transitions(capsys: pytest.CaptureFixture[str]) -> None:
    every_transition("corridor").save("single.npz")
    message = error_of(capsys, "dataset=single.npz", "learner.bound=trajectory")
    assert message.startswith("learner.bound: there are no trajectories, only single transitions, which bound nothing")
    assert "use bound=graph, for up to 4,000 distinct states, or bound=none" in message
    assert train_agent([*SMALL, "dataset=single.npz", "learner.bound=graph"]) == 0


# Memory


@pytest.mark.parametrize("name", ["cmd", "tmd"])
def test_batches_whose_square_does_not_fit(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contrastive, "_free_memory", lambda: 2**20)
    message = error_of(capsys, f"learner.name={name}", "learner.batch_size=4096")
    assert message.startswith("learner.batch_size: the distances of 4,096 x 4,096 pairs of this model take about ")
    assert " GiB, and 0.0 GiB are free; at most " in message
    fits = int(message.rpartition("at most ")[2].removesuffix(" fit").replace(",", ""))
    assert 2 <= fits < 4096
    assert error_of(capsys, f"learner.name={name}", f"learner.batch_size={fits + 1}")
    assert train_agent([*SMALL, f"learner.name={name}", f"learner.batch_size={fits}"]) == 0


def test_free_memory_includes_the_file_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contrastive, "_MEMINFO", tmp_path / "meminfo")
    assert contrastive._free_memory() is None
    (tmp_path / "meminfo").write_text("MemTotal: 4000 kB\nMemFree: 10 kB\nMemAvailable:    3000 kB\nCached: 2995 kB\n")
    assert contrastive._free_memory() == 3000 * 1024
    (tmp_path / "meminfo").write_text("MemTotal: 4000 kB\n")
    assert contrastive._free_memory() is None


# Plugins


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (PlainNumbers, "its state cannot be saved, so that it could not resume: CountingSGD keeps step as int, not as"),
        (ArrayState, "its state cannot be saved, so that it could not resume: that of its sampler is not plain JSON"),
        (BareParameter, "its state cannot be saved, so that it could not resume: optimizer optimizes a parameter"),
        (NeedsClosures, "TypeError: "),
        (Raises, "IndexError: no such state"),
    ],
)
def test_plugins_that_could_not_resume(
    cls: type, reason: str, capsys: pytest.CaptureFixture[str], restored_registry: None
) -> None:
    register_learner("broken", ToySettings)(cls)
    message = error_of(capsys, "learner.name=broken")
    assert message.startswith("learner broken breaks the contract (")
    assert f"): {reason}" in message


def test_a_plugin_without_settings(capsys: pytest.CaptureFixture[str]) -> None:
    Path("careless_learner.py").write_text(
        "from qrl import register_learner\nfrom tests.agents.learners.toys import Toy\nregister_learner('toy')(Toy)\n"
    )
    message = error_of(capsys, "--plugin", "careless_learner", "learner.name=toy")
    start = "the plugin careless_learner could not be loaded: RegistryError: learner toy: Toy has no settings; write "
    assert message.startswith(start)


# Resuming


def test_resuming_with_another_learner(capsys: pytest.CaptureFixture[str]) -> None:
    Run.start(small_settings(Path("q"), learner={"name": "qrl", "min_steps": 3}))
    files = {path.name: path.read_bytes() for path in Path("q").iterdir()}
    for arguments, change in (
        (["learner.name=gcbc"], "learner.name was 'qrl', now 'gcbc'"),
        (["learner.epsilon=0.5"], "learner.epsilon was 0.25, now 0.5"),
    ):
        assert train_agent(["--resume", "q", *arguments]) == 2
        message = f"error: --resume q cannot change settings: {change}; leave them out, or start a new run\n"
        assert capsys.readouterr().err == message
    assert train_agent(["--resume", "q", "learner.polyak=0.5"]) == 2
    assert "learner.polyak belongs to mbold, iql; qrl has " in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path("q").iterdir()} == files
    assert train_agent(["--resume", "q", "learner.epsilon=0.25"]) == 0  # as it is


def test_a_run_whose_learner_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run.start(small_settings(Path("r")))
    before = checkpoint_bytes(run.path)
    run.config.write_text(run.config.read_text().replace("name: mbold", "name: mine"))
    run.record.update({"learner_origin": "my-plugin 1.0"})
    assert train_agent(["--resume", "r"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: r/config.yaml: unknown learner 'mine'")
    assert error.endswith("(the run's learner came from my-plugin 1.0)\n")
    assert checkpoint_bytes(run.path) == before
