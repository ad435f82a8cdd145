"""The one task of an evaluation that is looked at."""

import numpy as np
import pytest

from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.single_task import check_play, goal_state, play_task, task_states
from qrl.envs.errors import LayoutError, WorldError
from tests.agents.goal_envs import Ring
from tests.agents.worlds import corridor, ring_data


def test_the_default_task_is_feasible_and_given_cells_are_kept() -> None:
    evaluator = Evaluator(corridor(20, "traps"))
    assert evaluator.truth is not None
    start, goal = task_states(evaluator)
    assert start in evaluator.truth.layout.starts
    assert np.isfinite(evaluator.truth.distances[start, goal])
    x, y = evaluator.truth.layout.cells[goal].tolist()
    assert task_states(evaluator, goal=(x, y)) == (start, goal)
    assert goal_state(evaluator) == goal
    with pytest.raises(WorldError, match="start and goal are both the cell"):
        task_states(evaluator, (x, y), (x, y))
    with pytest.raises(LayoutError, match=r"\(0, 0\) is a wall"):
        task_states(evaluator, goal=(0, 0))
    with pytest.raises(LayoutError, match=r"\(99, 0\) is outside"):
        task_states(evaluator, start=(99, 0))


def test_mistakes() -> None:
    evaluator = Evaluator(ring_data(), env=Ring())
    random = evaluator.reference("random")
    with pytest.raises(WorldError, match="renders no frames"):
        play_task(evaluator, random)
    with pytest.raises(WorldError, match="draws its tasks itself"):
        play_task(evaluator, random, goal=(1, 1))
    with pytest.raises(WorldError, match="no world to show"):
        check_play(Evaluator(ring_data()))
    with pytest.raises(WorldError, match="a goal cell needs a world"):
        task_states(Evaluator(ring_data()))
