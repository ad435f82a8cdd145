import pytest
import torch
from torch import Tensor

from qrl.q_models.readout import ReadoutQModel
from qrl.readouts import READOUTS, make_readout
from tests.q_models import SPEC


class Difference(ReadoutQModel):
    def output(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return goal - state


@pytest.mark.parametrize("name", READOUTS)
def test_distances_are_readouts_of_the_output(name: str) -> None:
    model, readout = Difference(SPEC, name), make_readout(name, SPEC.discount)
    state, goal = torch.randn(5), torch.randn(5)
    assert torch.equal(model.distance(state, None, goal, None), readout.distance(goal - state))
    assert torch.equal(model.discounted(state, None, goal, None), readout.discounted(goal - state))
