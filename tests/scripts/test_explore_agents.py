"""explore-agents as a user calls it."""

import shutil
from pathlib import Path

import pytest

from qrl.agents.runs.run import Run
from qrl.scripts.explore_agents import main as explore_agents
from tests.agents.worlds import graph_settings, small_settings


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the trained run in the working directory."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(trained, "iqe"))


def test_exploring(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explore_agents(["page.html", "iqe", "--checkpoints"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"wrote {Path('page.html').absolute()}: 0.")
    assert captured.err == "note: iqe kept no checkpoints but its last; train with checkpoint_keep=1\n"
    assert explore_agents(["page.html", "iqe"]) == 2
    assert "page.html exists already" in capsys.readouterr().err
    assert explore_agents(["page.html", "iqe", "--force"]) == 0


def test_scores_of_actions_have_no_distances(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = str(run / "dataset.npz")
    Run.start(small_settings(Path("gcbc"), dataset=dataset, learner={"name": "gcbc"}))
    assert explore_agents(["page.html", "gcbc", "iqe"]) == 0
    assert "gcbc, which learns scores of actions" in capsys.readouterr().err
    assert '"steps": null' in Path("page.html").read_text()


def test_what_cannot_be_explored(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str) -> str:
        assert explore_agents(["page.html", *arguments]) == 2
        return capsys.readouterr().err

    Run.start(small_settings(Path("other")))
    assert "other was trained in another world than iqe; a page shows one world" in refused("iqe", "other")
    assert "two of the runs have the same name" in refused("iqe", "iqe")
    assert "nothing is not a training run" in refused("nothing")
    assert "--seed must be at least 0" in refused("iqe", "--seed", "-1")
    Run.start(graph_settings(Path("graph")))
    assert "graph is a run of train-graph" in refused("graph")
    assert not Path("page.html").exists()
