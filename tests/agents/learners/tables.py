"""A Q-model whose values are set by hand."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from qrl import QModelSpec
from qrl.q_models import QModel


class Table(QModel):
    """A Q-model that is a table of logits: D = sigmoid(table[s, a, g, a']); observations are state ids."""

    def __init__(
        self, spec: QModelSpec, states: int, goal_kind: Literal["state", "state-action"] = "state-action"
    ) -> None:
        super().__init__(spec)
        self.goal_kind = goal_kind
        goal_actions = spec.num_actions if goal_kind == "state-action" else 1
        self.logits = nn.Parameter(torch.zeros(states, spec.num_actions, states, goal_actions))

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        return observations

    def discounted(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        s, g = torch.broadcast_tensors(state[..., 0].long(), goal[..., 0].long())
        table = self.logits[s, :, g].sigmoid()
        if goal_action is not None:
            column = goal_action if self.goal_kind == "state-action" else torch.zeros_like(goal_action)
            table = table.gather(-1, column[..., None, None].expand(*table.shape[:-1], 1)).squeeze(-1)
        if action is not None:
            table = table.gather(s.ndim, action.view(*action.shape, *[1] * (table.ndim - s.ndim))).squeeze(s.ndim)
        return table

    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return self.discounted(state, action, goal, goal_action).log() / math.log(self.spec.discount)


def ids(count: int) -> Tensor:
    """Observations that are state ids."""
    return torch.arange(float(count))[:, None]
