from pathlib import Path

import numpy as np
import pytest

from qrl import make_world
from qrl.envs.errors import LayoutError
from qrl.envs.ground_truth import ground_truth

# States 0 to 5 in a row: the start, the teleport, the first outlet and the goal; then the trap, an outlet without exit.
ROW = "########\n#STOG#O#\n########"
RIGHT, GAMMA = 1, 0.95


def test_a_teleport_by_hand(tmp_path: Path) -> None:
    world = make_world("teleport", layout=ROW)
    outcomes = world.transitions[0, RIGHT]
    assert sorted(outcomes) == [2, 4]
    assert world.probabilities[0, RIGHT].tolist() == [0.5, 0.5]
    distances = ground_truth(world).distances
    # With probability 1/2 two steps, else never: log_gamma(gamma^2 / 2).
    assert distances[0, 3] == pytest.approx(2 + np.log(0.5) / np.log(GAMMA), rel=1e-6)
    assert distances[2, 3] == 1
    assert np.isinf(distances[4, 3])
    (tmp_path / "row.txt").write_text(ROW)
    assert make_world("teleport", layout=str(tmp_path / "row.txt")) == world


def test_the_discount_decides_whether_the_risk_is_worth_it() -> None:
    risk = {}
    for discount in (0.9, 0.99):
        truth = ground_truth(make_world("teleport", discount=discount))
        start, goal = truth.world.starts[0], truth.world.goals[0]
        state, risk[discount] = start, False
        for _ in range(60):
            if state == goal:
                break
            action = int(truth.greedy(np.array([state]), np.array([goal]))[0].argmax())
            outcomes = truth.world.transitions[state, action]
            risk[discount] |= len(set(outcomes)) > 1
            state = outcomes[0]
    assert risk == {0.9: True, 0.99: False}


@pytest.mark.parametrize("text", ["####\n#SG#\n####", "#####\n#STG#\n#####", "#####\n#SOG#\n#####"])
def test_a_text_without_teleports_is_refused(text: str) -> None:
    with pytest.raises(LayoutError, match="mark at least one teleport with T and one outlet with O"):
        make_world("teleport", layout=text)


@pytest.mark.parametrize(
    "text", [ROW.replace("\n", "  \n"), " \n" + ROW, ROW.replace("\n", "\r\n"), f"\n{ROW}\n\n"], ids=range(4)
)
def test_blanks_and_line_breaks_do_not_shift_the_marks(text: str) -> None:
    assert make_world("teleport", layout=text) == make_world("teleport", layout=ROW)
