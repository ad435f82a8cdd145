"""train-agent as a user calls it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from qrl.agents.runs.checkpoint import load_checkpoint
from qrl.agents.runs.run import Run
from qrl.envs.dataset import Dataset
from qrl.registry import list_q_models
from qrl.scripts._training import STOPPING
from qrl.scripts.train_agent import main as train_agent
from tests.agents.runs.running import logged_rows
from tests.agents.worlds import corridor

COMMAND = str(Path(sys.executable).with_name("train-agent"))
SMALL = [
    *("collector.layout=corridor", "collector.trajectories=20", "learner.epochs=0.01", "learner.batch_size=32"),
    *("model.width=16", "model.latent_size=16", "compile=off", "threads=1"),
]


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", list_q_models())
def test_every_model_trains(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A few steps through the command's main function."""
    arguments = [*SMALL, "learner.min_steps=5", "model.width=8", "run=r", f"model.name={name}"]
    assert train_agent(arguments) == 0, capsys.readouterr().err
    assert "complete: r, loss" in capsys.readouterr().out
    run = Run.open("r")
    result = json.loads(run.complete.read_text())
    assert result["step"] == 5
    # The result is that of the saved weights, evaluated again.
    assert {key: result[key] for key in ("success_rate", "absolute_error")} == pytest.approx(
        {key: run.trainer.score()[key] for key in ("success_rate", "absolute_error")}
    )


def test_a_result_below_random_actions_is_said_to_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train_agent([*SMALL, "learner.min_steps=2", "run=bad"]) == 0
    assert "note: mrn-fixed reaches fewer goals than random actions" in capsys.readouterr().err
    monkeypatch.setattr("qrl.agents.evaluation.training_scores.random_success", lambda dataset, seed: 0.0)
    assert train_agent([*SMALL, "learner.min_steps=2", "run=good"]) == 0
    assert "random actions" not in capsys.readouterr().err


def test_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["collector.layout=corridor", "collector.trajectories=9", "model.params.hidden_sizes=[8]", "compile=off"]
    assert train_agent(["--dry-run", "model.name=mrn-fixed", *small]) == 0
    out = capsys.readouterr().out
    assert "run: runs/corridor__mrn-fixed__seed0" in out
    assert "of which in the head 66,048" in out
    assert "steps       5,000" in out
    assert "minutes" in out
    assert "fewer than a batch of 1024" in out
    assert os.listdir() == []


def test_own_data_without_layout(capsys: pytest.CaptureFixture[str]) -> None:
    Dataset.from_arrays(torch.randn(8, 5).numpy(), [0, 1, 2, 1, 0, 0], [5, 1], num_actions=3).save("own.npz")
    assert train_agent([*SMALL, "dataset=own.npz", "run=r", "learner.min_steps=4"]) == 0
    captured = capsys.readouterr()
    assert "note: the dataset has no world: nothing is evaluated" in captured.err
    assert "complete: r, loss" in captured.out
    assert "success_rate" not in logged_rows(Path("r"))[0]


def test_the_config_says_how_many_trajectories_the_file_has(capsys: pytest.CaptureFixture[str]) -> None:
    corridor(30).save("thirty.npz")
    assert train_agent([*SMALL, "dataset=thirty.npz", "run=r", "learner.min_steps=2"]) == 0
    assert "  trajectories: 30\n" in Path("r/config.yaml").read_text()


def test_resuming_with_moved_data_and_extending(capsys: pytest.CaptureFixture[str]) -> None:
    corridor().save("d.npz")
    assert train_agent([*SMALL, "dataset=d.npz", "run=r", "learner.min_steps=4"]) == 0
    shutil.move("d.npz", "e.npz")
    assert train_agent(["--resume", "r"]) == 2
    assert "train-agent --resume r dataset=FILE" in capsys.readouterr().err
    corridor(3).save("other.npz")
    assert train_agent(["--resume", "r", "dataset=other.npz"]) == 2
    assert "was trained on other data than" in capsys.readouterr().err
    assert train_agent(["--resume", "r", "dataset=e.npz"]) == 0
    assert train_agent(["--resume", "r", "learner.min_steps=6"]) == 0
    assert "steps 4 to 6" in capsys.readouterr().out
    assert json.loads(Path("r/run.json").read_text())["num_steps"] == 6
    assert train_agent(["--resume", "r", "learner.min_steps=5"]) == 2
    assert "learner.min_steps may be raised, not lowered to 5" in capsys.readouterr().err


def test_resume_refuses_other_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert train_agent([*SMALL, "run=r", "learner.min_steps=2"]) == 0
    assert train_agent(["--resume", "r", "learner.lr=0.1", "seed=0"]) == 2
    error = capsys.readouterr().err
    assert "learner.lr was 0.003, now 0.1" in error
    assert "seed" not in error
    for option in (["--force"], ["--dry-run"], ["--init", "r"]):
        assert train_agent(["--resume", "r", *option]) == 2
        assert "--resume cannot be combined with --force, --dry-run or --init" in capsys.readouterr().err


def test_warm_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert train_agent([*SMALL, "run=first", "learner.min_steps=2"]) == 0
    assert train_agent([*SMALL, "run=second", "learner.min_steps=2", "--init", "first"]) == 0
    assert json.loads(Path("second/run.json").read_text())["init"] == {"run": str(Path("first").absolute()), "step": 2}
    capsys.readouterr()
    assert train_agent([*SMALL, "run=third", "--init", "first", "model.width=8"]) == 2
    assert (
        "error: --init: first/checkpoint.safetensors holds another model: model.params.hidden_sizes"
        in capsys.readouterr().err
    )
    assert not Path("third").exists()


def test_bad_settings_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert train_agent(["learner.goals.future=0.9"]) == 2
    assert "learner.goals: current + future + random must be 1, but sum to 1.41" in capsys.readouterr().err
    assert train_agent(["learner.lrr=1"]) == 2
    assert "did you mean 'learner.lr'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as exit_:
        train_agent(["--device", "cuda"])
    assert exit_.value.code == 2
    assert "did you mean device=cuda?" in capsys.readouterr().err
    assert train_agent(["device=toaster", *SMALL]) == 2
    assert "device: 'toaster' cannot be used here" in capsys.readouterr().err
    assert os.listdir() == []


HEADS = """
import torch
from qrl import register_head
from qrl.heads import Head

class Toy(Head):
    guaranteed_quasimetric = True

    def __init__(self, input_size: int) -> None:
        super().__init__(input_size)

@register_head("toy-shape")
class Shape(Toy):
    def forward(self, u, v):
        return (u - v).relu()

@register_head("toy-nan")
class NaN(Toy):
    def forward(self, u, v):
        return (u - v).relu().sum(-1) * float("nan")

@register_head("toy-liar")
class Liar(Toy):
    def forward(self, u, v):
        return (u - v).relu().sum(-1).square()

@register_head("toy-fine")
class Fine(Toy):
    def forward(self, u, v):
        return (u - v).relu().sum(-1)
"""


@pytest.fixture
def plugin(restored_registry: None) -> Iterator[None]:
    """A module of heads in the working directory, forgotten afterwards."""
    Path("toy_heads.py").write_text(HEADS)
    yield
    sys.modules.pop("toy_heads", None)


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("name", "head", "message"),
    [
        ("toy-shape", "Shape", "shape"),
        ("toy-nan", "NaN", "finite"),
        ("toy-liar", "Liar", "d(x, z) exceeds d(x, y) + d(y, z)"),
    ],
)
def test_a_broken_plugin_is_refused_before_the_first_step(
    name: str, head: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train_agent(["--plugin", "toy_heads", *SMALL, f"model.name={name}", "run=r"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: model {name} breaks the contract")
    assert message in error
    assert f"its head is {head}" in error
    assert "learner.lr" not in error
    assert not Path("r").exists()


@pytest.mark.usefixtures("plugin")
def test_sizes_reach_a_plugin_head() -> None:
    arguments = ["--plugin", "toy_heads", *SMALL, "model.width=12", "model.latent_size=10", "model.name=toy-fine"]
    assert train_agent([*arguments, "run=r", "learner.min_steps=2"]) == 0
    checkpoint, tensors = load_checkpoint(Path("r/checkpoint.safetensors"))
    assert checkpoint.model_params["latent_size"] == 10
    assert checkpoint.model_params["hidden_sizes"] == [12, 12, 12]
    assert any(tensor.shape == (12, 12) for key, tensor in tensors.items() if key.startswith("model."))
    assert json.loads(Path("r/run.json").read_text())["model_origin"] == "toy_heads"


def _default_interrupt() -> None:
    """A suite that a shell runs in the background ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(*command: str) -> "Iterator[subprocess.Popen[str]]":
    """A process, which is killed at the end if it still runs."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=_default_interrupt)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


LONG = [*SMALL, "learner.min_steps=1000000", "run=r", "log_every=5", "evaluate_every=1000000"]


def test_the_command_stops_cleanly(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Path("r/metrics.csv")
    with started(COMMAND, *LONG) as process:
        while not metrics.exists() or metrics.read_text().count("\n") < 4:
            assert process.poll() is None
            time.sleep(0.02)
        assert train_agent(["--resume", "r"]) == 2
        assert capsys.readouterr().err == "error: r is in use by another process\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    step = load_checkpoint(Path("r/checkpoint.safetensors"))[0].step
    assert f"stopped at step {step}; continue with: train-agent --resume r" in out
    assert STOPPING in err


SLOW = """
import sys, time
from qrl.agents.learners.base import Learner
def step(self, log=True):
    print("stepping", flush=True)
    time.sleep(600)  # longer than this test
Learner.step = step
from qrl.scripts.train_agent import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupt_is_acknowledged_at_once_and_a_second_one_ends_it() -> None:
    with started(sys.executable, "-c", SLOW, *LONG) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while "stepping" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        lines = [process.stderr.readline() for _ in range(2)]
        assert lines == ["\n", f"{STOPPING}\n"]
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted\n")


EARLY = """
import sys
from qrl.scripts.train_agent import main
print("ready", flush=True)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("delay", [0.05, 0.15, 0.3])
def test_an_early_interrupt_prints_no_traceback(delay: float) -> None:
    with started(sys.executable, "-c", EARLY, *LONG) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"  # before that, Python itself would print a traceback
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "interrupted\n")
    assert not Path("r").exists()
