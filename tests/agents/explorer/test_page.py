"""What goes into the page, and what cannot."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qrl
from qrl.agents.evaluation.trained_agent import TrainedAgent, open_agents
from qrl.agents.explorer import page as explorer_page
from qrl.agents.explorer.page import MODULES, script, stored_goals, write_explorer
from qrl.agents.explorer.snapshots import MAX_CHECKPOINTS, exact_snapshot, spread
from qrl.agents.explorer.tables import INFINITE, unpack
from qrl.agents.explorer.world import ExplorerWorld
from qrl.agents.planning.planner import TablePolicy
from qrl.agents.planning.references import oracle_steps
from qrl.agents.runs.run import Run
from qrl.common.errors import ConfigError
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.layout import load_layout
from qrl.envs.world import World
from tests.agents.explorer.pages import circle, hall, world_of
from tests.agents.worlds import small_settings, without_layout


def data_of(path: Path) -> dict[str, Any]:
    (text,) = re.findall('<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    data: dict[str, Any] = json.loads(text)
    return data


def test_the_tables_hold_what_agent_and_planner_say(trained: Path, tmp_path: Path) -> None:
    assert write_explorer(tmp_path / "page.html", open_agents([trained])) == []
    data = data_of(tmp_path / "page.html")
    truth = ground_truth(load_layout("traps"))
    rows = truth.layout.observations
    count = len(rows)
    exact, learned = (planner["snapshots"][0] for planner in data["planners"])
    agent = qrl.load(trained)
    for snapshot, steps in ((exact, oracle_steps(truth)), (learned, agent.all_steps_to_goal(rows))):
        table = snapshot["steps"]
        codes = unpack(table["data"], np.uint16).reshape(count, 4, count).transpose(2, 0, 1)
        values = (codes.astype(float) + table["offset"]) / 10 ** table["digits"]
        assert ((codes == INFINITE) == np.isinf(steps)).all()
        finite = np.isfinite(steps)
        assert np.abs(values - steps)[finite].max() <= 0.5 * 10 ** -table["digits"] + 1e-9
        greedy = unpack(snapshot["greedy"], np.uint8).reshape(count, count).T
        assert (greedy == TablePolicy.greedy(steps, rows, seed=0).table).all()
    assert (exact["steps"]["digits"], learned["steps"]["digits"]) == (0, 2)
    assert "with an error of at most 0.0050 steps" in (tmp_path / "page.html").read_text()
    transitions = unpack(data["world"]["transitions"], np.uint16).reshape(count, 4)
    assert (transitions == truth.transitions).all()


def test_the_page_is_self_contained_and_escapes_names(trained: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained, tmp_path / "<script><b>x")
    write_explorer(tmp_path / "page.html", open_agents([run]))
    page = (tmp_path / "page.html").read_text()
    assert "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="', page)
    assert "<b>x" not in page
    assert (tmp_path / "page.html").stat().st_size < 1_000_000


def test_modules_become_one_script() -> None:
    text = script()
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)
    folder = Path(explorer_page.__file__).parent
    assert {path.stem for path in folder.glob("*.js")} == set(MODULES)
    for position, name in enumerate(MODULES):  # each finds the others above it
        imported = re.findall(r'from "\./(\w+)\.js"', (folder / f"{name}.js").read_text())
        assert set(imported) <= set(MODULES[:position]), name


def test_kept_checkpoints_are_thinned_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.start(small_settings(tmp_path / "run", checkpoint_every=2, checkpoint_keep=1))
    for _ in run.train():
        pass
    assert write_explorer(tmp_path / "last.html", open_agents([run.path])) == []
    assert [snapshot["step"] for snapshot in data_of(tmp_path / "last.html")["planners"][1]["snapshots"]] == [20]
    write_explorer(tmp_path / "all.html", open_agents([run.path]), checkpoints=True)
    steps = [snapshot["step"] for snapshot in data_of(tmp_path / "all.html")["planners"][1]["snapshots"]]
    assert len(steps) == MAX_CHECKPOINTS
    assert steps == sorted(set(steps))
    assert steps[-1] == 20


def test_spread() -> None:
    assert spread(3, 5) == [0, 1, 2]
    assert spread(10, 3) == [3, 6, 9]
    assert spread(4, 0) == []


def test_a_large_world_has_fewer_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(hall(10))
    assert stored_goals(world).tolist() == list(range(100))
    monkeypatch.setattr(explorer_page, "TABLE_VALUES", 100 * 4 * 7)
    goals = stored_goals(world)
    assert len(goals) == len(set(goals)) == 7
    assert world.task[1] in goals
    assert set(goals) <= set(world.goals)
    snapshot = exact_snapshot(world, goals, seed=0)
    everything = exact_snapshot(world, np.arange(100), seed=0)
    assert snapshot is not None
    assert everything is not None
    assert (snapshot.greedy == everything.greedy[:, goals]).all()


def test_learned_steps_to_some_goals(trained: Path) -> None:
    agent = qrl.load(trained)
    rows = load_layout("traps").observations
    goals = np.array([3, 40, 7])
    np.testing.assert_allclose(agent.all_costs(rows, goals), agent.all_costs(rows)[:, goals], atol=1e-4)


def test_what_cannot_be_shown(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = TrainedAgent.open(trained)
    Run.start(small_settings(tmp_path / "corridor"))
    with pytest.raises(ConfigError, match=r"corridor was trained in another world than .*: make one page per world"):
        write_explorer(tmp_path / "page.html", open_agents([trained, tmp_path / "corridor"]))
    unknown = replace(agent, dataset=without_layout(agent.dataset), notices=[])
    with pytest.raises(ConfigError, match="another world"):
        write_explorer(tmp_path / "page.html", [agent, unknown])
    monkeypatch.setattr(explorer_page, "MAX_STATES", 20)
    with pytest.raises(ConfigError, match=r"its world has .* states, but a page holds at most 20"):
        write_explorer(tmp_path / "page.html", [agent])
    assert not (tmp_path / "page.html").exists()


def test_runs_on_other_data_of_the_same_world(trained: Path, tmp_path: Path) -> None:
    Run.start(small_settings(tmp_path / "other", collector={"layout": "traps", "trajectories": 5}))
    assert (
        Dataset.load(tmp_path / "other" / "dataset.npz").content_hash != TrainedAgent.open(trained).dataset.content_hash
    )
    (notice,) = write_explorer(tmp_path / "page.html", open_agents([trained, tmp_path / "other"]))
    assert "other is not complete: this is its checkpoint at step 0" in notice
    assert [planner["name"] for planner in data_of(tmp_path / "page.html")["planners"]] == [
        "ground truth",
        "iqe",
        "other",
    ]
    assert notice in (tmp_path / "page.html").read_text()


def test_which_worlds_have_a_map() -> None:
    drawing = circle().drawing()
    assert drawing is not None
    assert (drawing["width"], drawing["height"], drawing["doors"], drawing["moves"]) == (3, 3, [], None)
    assert drawing["cells"][3] == [2, 1]
    shared = circle(cells=[[0, 0]] * 8)
    assert shared.drawing() is None
    assert "no cells of their own" in str(shared.map_missing)
    assert "no cells of their own" in str(circle(cells=None).map_missing)


def test_a_world_of_chance_has_tables_of_its_exact_distances() -> None:
    states = np.arange(4)
    steps = np.stack([(states + 1) % 4, states], 1)
    world = World(
        "chance",
        np.eye(4),
        steps[:, None],
        [0],
        [2],
        probabilities=np.full((4, 1, 2), 0.5),
        cells=np.stack([states, states], 1),
    )
    explorer = ExplorerWorld("chance", world.observations, ("on",), (0, 2), GroundTruth(world))
    assert "chance decides" in str(explorer.map_missing)
    assert explorer.transitions is None
    exact = explorer.exact_steps(np.array([2]))
    assert exact is not None
    # After a step to the goal or none, each with probability 1/2: gamma^d = (1 + gamma^d(1, 2)) / 2.
    value = 0.95 ** explorer.truth.distances[1, 2]  # type: ignore[union-attr]
    assert exact[1, 0, 0] == pytest.approx(np.log((1 + value) / 2) / np.log(0.95), rel=1e-5)
