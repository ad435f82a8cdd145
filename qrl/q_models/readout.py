"""Q-models that end in an unconstrained output z, read as a distance in one of five ways."""

from typing import Annotated

from pydantic import Field
from torch import Tensor

from qrl.q_models.base import QModel
from qrl.readouts import READOUTS, make_readout
from qrl.spec import QModelSpec

ReadoutName = Annotated[str, Field(description=f"how the output is read: {', '.join(READOUTS)}")]


class ReadoutQModel(QModel):
    """A subclass gives `output`, with the arguments of `distance`."""

    def __init__(self, spec: QModelSpec, readout: str) -> None:
        super().__init__(spec)
        self.readout = make_readout(readout, spec.discount)

    def output(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        raise NotImplementedError  # pragma: no cover

    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return self.readout.distance(self.output(state, action, goal, goal_action))

    def discounted(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return self.readout.discounted(self.output(state, action, goal, goal_action))
