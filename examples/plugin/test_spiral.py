import pytest
from qrl_spiral import SpiralSettings, spiral

import qrl
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.envs.ground_truth import ground_truth
from qrl.testing import check_world


@pytest.mark.parametrize("circles", [2, 5])
def test_contract(circles: int) -> None:
    check_world("spiral", circles=circles)


def test_by_hand() -> None:
    distances = ground_truth(spiral(SpiralSettings(circles=2, places=3))).distances
    # Places 0, 1, 2 of the outer circle, then of the inner one; both ladders are at place 0.
    assert distances[0].tolist() == [0, 1, 2, 1, 2, 3]
    assert distances[1].tolist() == [2, 0, 1, 3, 4, 5]
    assert distances[3].tolist() == [1, 2, 3, 0, 1, 2]


def test_the_oracle_is_perfect() -> None:
    evaluator = Evaluator(qrl.collect(world="spiral", trajectories=20))
    assert evaluator.score(evaluator.reference("oracle")).success_rate == 1
