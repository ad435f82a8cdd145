"""Q-models whose values are set by hand, or learned one by one."""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

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
        return look_up(self.logits, state, action, goal, goal_action).sigmoid()

    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return F.softplus(-look_up(self.logits, state, action, goal, goal_action)) / -math.log(self.spec.discount)


class ShortestPaths(QModel):
    """Shortest paths over a table of lengths between all state-action pairs: it can be any quasimetric."""

    guaranteed_quasimetric = True

    def __init__(self, spec: QModelSpec, states: int) -> None:
        super().__init__(spec)
        pairs = states * spec.num_actions
        self.raw = nn.Parameter(torch.ones(pairs, pairs))

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        return observations

    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        paths = F.softplus(self.raw) * (1 - torch.eye(len(self.raw)).to(self.raw))
        for _ in range(math.ceil(math.log2(len(paths)))):  # paths of up to twice as many edges
            paths = (paths[:, :, None] + paths[None]).amin(1)
        table = paths.view(-1, self.spec.num_actions, len(paths) // self.spec.num_actions, self.spec.num_actions)
        return look_up(table, state, action, goal, goal_action)


def look_up(table: Tensor, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
    """Entries of table (states, actions, goals, goal actions), with the arguments of `QModel.distance`."""
    s, g, a, b = state[..., 0].long(), goal[..., 0].long(), action, goal_action
    if a is None:
        s, g, b = s[..., None], g[..., None], None if b is None else b[..., None]
        a = torch.arange(table.shape[1])
    if b is None:
        s, g, a = s[..., None], g[..., None], a[..., None]
        b = torch.arange(table.shape[3])
    if table.shape[3] == 1:  # goals are states
        b = torch.zeros_like(b)
    return table[s, a, g, b]


def ids(count: int) -> Tensor:
    """Observations that are state ids."""
    return torch.arange(float(count))[:, None]
