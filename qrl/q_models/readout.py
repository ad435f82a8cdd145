"""Q-models with an unconstrained output z, which a readout turns into a distance."""

from typing import Annotated

from pydantic import AfterValidator, Field
from torch import Tensor

from qrl.q_models.base import QModel
from qrl.readouts import READOUTS, check_readout, make_readout
from qrl.registry import register_alias
from qrl.spec import QModelSpec

ReadoutName = Annotated[
    str,
    Field(description=f"how the output becomes a distance: {', '.join(READOUTS)}"),
    AfterValidator(check_readout),
]


class ReadoutQModel(QModel):
    """A subclass implements `output`, with the arguments of `distance`."""

    def __init__(self, spec: QModelSpec, readout: str) -> None:
        super().__init__(spec)
        self.readout = make_readout(readout, spec.discount)

    def output(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        raise NotImplementedError  # pragma: no cover

    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return self.readout.distance(self.output(state, action, goal, goal_action))

    def discounted(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return self.readout.discounted(self.output(state, action, goal, goal_action))


def register_readout_aliases(model: str) -> None:
    """Register MODEL-READOUT for every readout: the names under which earlier versions knew these models."""
    for readout in READOUTS:
        register_alias(f"{model}-{readout}", model, legacy=True, readout=readout)
