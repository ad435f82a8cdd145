"""Unconstrained networks on the concatenation of state and goal, with one output per action or pair of actions."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from qrl.encoders import MLP
from qrl.q_models.base import pick
from qrl.q_models.latent import BatchNorm, HiddenSizes
from qrl.q_models.readout import ReadoutName, ReadoutQModel, register_readout_aliases
from qrl.registry import register_alias, register_q_model
from qrl.spec import QModelSpec

GoalKind = Annotated[
    Literal["state-action", "state"], Field(description="goals are state-action pairs (A x A outputs) or states (A)")
]


@register_q_model("unconstrained", family="unconstrained")
class UnconstrainedQModel(ReadoutQModel):
    """The outputs are those of one network on a state and a goal, without any structure."""

    def __init__(
        self,
        spec: QModelSpec,
        readout: ReadoutName = "disc-sigmoid",
        goal_kind: GoalKind = "state-action",
        hidden_sizes: HiddenSizes = (2048, 2048, 2048, 256),
        batch_norm: BatchNorm = True,
    ) -> None:
        super().__init__(spec, readout)
        self.goal_kind = goal_kind
        self.goal_actions = spec.num_actions if goal_kind == "state-action" else 1
        self.network = MLP(2 * spec.observation_dim, hidden_sizes, spec.num_actions * self.goal_actions, batch_norm)

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        """The observations themselves: nothing can be precomputed from a state alone."""
        return observations

    def output(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        pairs = torch.cat(torch.broadcast_tensors(state, goal), -1)
        rows = self.network(pairs.flatten(0, -2) if pairs.ndim > 1 else pairs.unsqueeze(0))
        outputs: Tensor = rows.reshape(*pairs.shape[:-1], self.spec.num_actions, self.goal_actions)
        if action is not None:
            outputs = pick(outputs, action, -2)
        if goal_action is None:
            return outputs
        if self.goal_kind == "state":
            return outputs.squeeze(-1)
        return pick(outputs, goal_action.unsqueeze(-1) if action is None else goal_action, -1)


register_alias("unconstrained-state", "unconstrained", goal_kind="state")
register_readout_aliases("unconstrained")
register_readout_aliases("unconstrained-state")
