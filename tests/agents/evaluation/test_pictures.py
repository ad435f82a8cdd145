"""Pictures and the report are made for every world; what they look like was judged by eye."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from qrl.agents.evaluation import pictures
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.report import write_report
from qrl.agents.evaluation.results import Evaluation
from qrl.agents.planning.planner import RandomPolicy, TablePolicy
from qrl.agents.runs.trained_run import TrainedRun
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import Layout, load_layout
from tests.agents.worlds import corridor


@pytest.mark.parametrize("layout", ["six-rooms", "traps", "corridor"])
@pytest.mark.parametrize("reference", ["oracle", "empirical-graph"])
def test_every_picture_of_every_world(layout: str, reference: str, tmp_path: Path) -> None:
    evaluator = Evaluator(corridor(10, layout))
    subject = evaluator.reference(reference)  # the graph's estimates are infinite in places
    results = evaluator.score(subject)
    drawn = pictures.evaluation_pictures(evaluator, subject, Evaluation(**dict(results)), tmp_path)
    assert [path.name for path in drawn] == ["distance-map.png", "estimates.png", "success.png"]
    for path in drawn:
        with Image.open(path) as image:
            assert image.width > 800
            assert len(np.unique(np.asarray(image.convert("L")))) > 20  # not blank


def test_random_has_no_distances_to_draw(tmp_path: Path) -> None:
    evaluator = Evaluator(corridor())
    subject = evaluator.reference("random")
    evaluation = Evaluation(**dict(evaluator.score(subject)))
    assert [path.name for path in pictures.evaluation_pictures(evaluator, subject, evaluation, tmp_path)] == [
        "success.png"
    ]


def test_which_states_are_lost() -> None:
    truth = ground_truth(Layout("########\n#S....G#\n########"))
    up, right, _, left = range(4)
    actions = np.array([up, right, right, left, right, up])  # blocked; into a loop of 2 and 3; to the goal
    ax = Figure().subplots()
    lost = pictures._draw_policy(ax, truth, actions, 5, np.ones(6, bool))
    assert lost.tolist() == [True, True, True, True, False, False]
    quivers: list[Any] = list(ax.collections)
    assert [len(quiver.get_offsets()) for quiver in quivers] == [1, 1, 2]  # to the goal, lost, in the loop
    good, bad, loop = (quiver.get_facecolor().tolist() for quiver in quivers)
    assert bad == loop != good
    across, along = (np.concatenate([getattr(quiver, part) for quiver in quivers]) for part in ("U", "V"))
    assert np.sign(across).tolist() == [1, 1, 1, -1]
    assert not along.any()


def test_a_report_stands_alone(trained: Path, tmp_path: Path) -> None:
    run = TrainedRun.open(trained)
    evaluator = Evaluator(run.dataset)
    subject = evaluator.agent(run.agent, "<b>iqe</b>")
    results = [evaluator.score(each) for each in [subject, *evaluator.references()]]
    write_report(tmp_path / "report.html", [run], evaluator, [subject], results)
    page = (tmp_path / "report.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', page)
    assert len(sources) == 5
    assert "by true distance" in page
    assert all(source.startswith("data:image/") for source in sources)
    assert "<b>iqe</b>" not in page  # names are escaped
    assert "&lt;b&gt;iqe&lt;/b&gt;" in page
    text = re.sub(r'src="[^"]*"', "", page)
    for expected in ("empirical-graph", "success rate", "hidden_sizes", run.dataset.content_hash, "How to read"):
        assert expected in text
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_the_map_of_a_goal_that_hardly_anyone_reaches(tmp_path: Path) -> None:
    layout = load_layout("traps")
    truth = ground_truth(layout)
    reachable_from = np.isfinite(truth.distances).sum(0)
    goal = int(reachable_from.argmin())
    evaluator = Evaluator(corridor(10, "traps"))
    subject: Any = evaluator.reference("oracle")
    assert isinstance(subject.policy, TablePolicy)
    subject.policy.otherwise = RandomPolicy(4, 0)
    pictures.distance_maps(subject, truth, goal, tmp_path / "map.png")
    assert (tmp_path / "map.png").exists()
