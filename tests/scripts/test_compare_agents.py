"""compare-agents as a user calls it."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import Steps
from qrl.agents.runs.run import Run
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from qrl.scripts.compare_agents import main as compare_agents
from tests.agents.worlds import small_settings, without_layout


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the trained run in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISPLAY", raising=False)
    return Path(shutil.copytree(trained, "iqe"))


def test_comparing(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(run, "again")
    assert compare_agents(["r/report.html", "iqe", "again"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    for name in ("iqe", "again"):
        assert f"note: {name} reaches fewer goals than random actions" in captured.err
    assert lines[0].split() == ["iqe", "again", "oracle", "random", "empirical-graph"]
    assert lines[1].split()[2] == lines[1].split()[3]
    assert lines[-1] == f"wrote {Path('r/report.html').absolute()}"
    assert Path("r/report.html").stat().st_size > 100_000
    for name in ("iqe", "again"):
        assert EventAccumulator(f"{name}/tensorboard").Reload().Tensors("evaluation/exhaustive")


def test_the_goal_of_the_pictures(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The task goes to the given goal from the start that is farthest from it."""
    truth = ground_truth(load_layout("traps"))
    goal = int(np.isinf(truth.distances).sum(0).argmax())  # unreachable from some states, but from no start
    longest = int(truth.distances[truth.layout.starts, goal].max())
    assert compare_agents(["r.html", "iqe", "--goal", ",".join(map(str, truth.layout.cells[goal]))]) == 0
    (caption,) = re.findall("<figcaption>(A task [^<]*)", Path("r.html").read_text())
    assert caption.startswith(f"A task with a shortest path of {longest} steps: ")
    assert compare_agents(["s.html", "iqe", "--goal", "0,0"]) == 2
    assert "(0, 0) is a wall" in capsys.readouterr().err


def test_runs_without_a_layout_get_tables(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without_layout(Dataset.load(run / "dataset.npz")).save("mine.npz")
    for name, seed in (("mine", 0), ("other", 1)):
        Run.start(small_settings(Path(name), dataset="mine.npz", seed=seed))
    assert compare_agents(["r.html", "mine", "other"]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("note: there is no world to plan in") == 1
    assert captured.out.splitlines()[0].split() == ["mine", "other"]
    page = Path("r.html").read_text()
    assert '<th scope="col">mine</th><th scope="col">other</th>' in page
    assert "triangle violations<small>" in page
    assert page.count("<img") == 3  # nothing has been trained: no curves, but distances, and lengths of trajectories
    assert "hindsight consistency<small>" in page
    assert "On held-out trajectories, mine keeps " in page
    assert EventAccumulator("mine/tensorboard").Reload().Tensors("evaluation/validation")
    Run.start(small_settings(Path("fewer"), dataset="mine.npz", validation=0.3))
    assert compare_agents(["t.html", "mine", "fewer"]) == 0
    assert "note: the runs hold out different trajectories: metrics of these do not compare" in capsys.readouterr().err
    assert compare_agents(["s.html", "mine", "--goal", "1,1"]) == 2
    assert "error: there is no world to show" in capsys.readouterr().err
    assert not Path("s.html").exists()


def test_what_cannot_be_compared(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(arguments: list[str]) -> str:
        assert compare_agents(arguments) == 2
        return capsys.readouterr().err

    Run.start(small_settings(Path("other")))
    assert "other was trained on other data than iqe" in refused(["r.html", "iqe", "other"])
    assert "two of the runs have the same name" in refused(["r.html", "iqe", "iqe"])
    assert "must end in .html" in refused(["r.txt", "iqe"])
    missing = refused(["r.html", "iqe", "--explorer", "e.html"])
    assert "--explorer: e.html does not exist; make it with explore-agents first" in missing
    assert not Path("r.html").exists()


def test_the_distances_of_an_agent_are_computed_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, compute = [], Agent.all_costs

    def counted(self: Agent, observations: NDArray[np.float32]) -> Steps:
        calls.append(self)
        return compute(self, observations)

    monkeypatch.setattr(Agent, "all_costs", counted)
    assert compare_agents(["r.html", "iqe"]) == 0
    assert len(calls) == 1
