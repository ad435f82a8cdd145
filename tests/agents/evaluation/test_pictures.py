"""What the pictures show; how they look was judged by eye."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from qrl.agents.evaluation import pictures
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.single_task import goal_state
from qrl.agents.planning.planner import TablePolicy
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import Layout, load_layout
from tests.agents.worlds import corridor


@pytest.mark.parametrize(
    ("layout", "reference"),
    [("six-rooms", "oracle"), ("traps", "empirical-graph"), ("corridor", "oracle")],
)
def test_every_picture_of_every_world(layout: str, reference: str, tmp_path: Path) -> None:
    evaluator = Evaluator(corridor(10, layout))
    subject = evaluator.reference(reference)  # some estimates of the graph are infinite
    evaluation = evaluator.evaluate(subject)
    drawn = pictures.evaluation_pictures(evaluator, subject, evaluation, tmp_path)
    assert len(drawn) == len(set(drawn)) == 9
    assert [path.name for path in drawn[::3]] == ["distance-map.png", "estimates.png", "success.png"]
    assert all(path.exists() for path in drawn)
    for path in drawn[::3]:
        with Image.open(path) as image:
            assert image.width > 800
            assert len(np.unique(np.asarray(image.convert("L")))) > 20  # not blank


def test_random_has_no_distances_to_draw(tmp_path: Path) -> None:
    evaluator = Evaluator(corridor())
    subject = evaluator.reference("random")
    evaluation = evaluator.evaluate(subject, references=False)
    drawn = pictures.evaluation_pictures(evaluator, subject, evaluation, tmp_path)
    assert [path.name for path in drawn] == ["success.png", "success.pdf", "success.svg"]


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


def test_the_map_of_a_goal_that_few_states_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = ground_truth(load_layout("traps"))
    reachable_from = np.isfinite(truth.distances).sum(0)
    goal = int(reachable_from.argmin())
    subject = Evaluator(corridor(10, "traps")).reference("oracle")
    assert isinstance(subject.policy, TablePolicy)
    saved: list[Figure] = []
    monkeypatch.setattr(pictures, "save_figure", lambda figure, path: saved.append(figure))
    pictures.distance_maps(subject, truth, goal, tmp_path / "map.png")
    left, middle, right, *_ = saved[0].axes
    others = reachable_from[goal] - 1
    assert left.get_title() == f"Estimated: {others} of {others} states reach the goal (white: no estimate)"
    assert middle.get_title() == "Exact (white: unreachable)"
    assert right.get_title() == "Estimated - exact (mean +0.0 steps)"


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_the_scale_of_a_map_says_when_it_clips(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = Evaluator(corridor(10, "traps"))
    subject = evaluator.reference("oracle")
    truth = evaluator.truth
    assert truth is not None
    assert subject.steps is not None
    saved: list[Figure] = []
    monkeypatch.setattr(pictures, "save_figure", lambda figure, path: saved.append(figure))
    goal = goal_state(evaluator)
    pictures.distance_maps(replace(subject, steps=factor * subject.steps), truth, goal, "unused.png")
    learned, exact, _ = (bar for bar in saved[0].axes[3:])
    distances = truth.distances[np.isfinite(truth.distances[:, goal]), goal]
    above = int((np.where(distances, factor * (distances - 1) + 1, 0) > distances.max()).sum())
    assert (above > 0) == (factor > 1)
    assert (f"{above} states above" in learned.get_ylabel()) == (factor > 1)
    assert exact.get_ylabel() == "steps to the goal"
    bars = [ax._colorbar.extend for ax in saved[0].axes[3:5]]  # type: ignore[attr-defined]
    assert bars == ["max" if factor > 1 else "neither", "neither"]
