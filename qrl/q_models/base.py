"""The contract of a Q-model: distances between state-action pairs, or from them to states."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from qrl.spec import QModelSpec


class QModel(nn.Module):
    """A learned distance d((s, a), (g, a')), or d((s, a), g) if `goal_kind` is "state".

    A subclass implements `encode` and `distance`, and `discounted` if it can do better than gamma**distance.
    `state` and `goal` are rows of the output of `encode`, with any leading dimensions that broadcast. Actions are
    integer tensors with these leading dimensions, or None for all actions, which appends an axis: first for `action`,
    then for `goal_action`. If goals are states, goal actions are ignored and their axis has size 1.
    """

    guaranteed_quasimetric: bool = False
    goal_kind: Literal["state-action", "state"] = "state-action"

    def __init__(self, spec: QModelSpec) -> None:
        super().__init__()
        self.spec = spec

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        """Everything that depends on a single state: (rows, observation_dim) to (rows, ...).

        `counts` (rows,) weights batch statistics, so that encoding distinct rows equals encoding all repetitions;
        it has no effect in eval mode.
        """
        raise NotImplementedError  # pragma: no cover

    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        raise NotImplementedError  # pragma: no cover

    def discounted(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        """D = gamma**d, with the arguments of `distance`."""
        return self._discount(self.distance(state, action, goal, goal_action))

    def _discount(self, distances: Tensor) -> Tensor:
        return torch.exp(distances * math.log(self.spec.discount))

    def distance_at(
        self, rows: Tensor, states: Tensor, actions: Tensor | None, goals: Tensor, goal_actions: Tensor
    ) -> Tensor:
        """`distance` for `states` and `goals` (n,) given as indices into the `rows` of `encode`; for training.

        A model may override it to gather only the required parts of the rows.
        """
        # index_select, because the backward pass of rows[index] is not deterministic on several threads.
        return self.distance(rows.index_select(0, states), actions, rows.index_select(0, goals), goal_actions)

    def discounted_at(
        self, rows: Tensor, states: Tensor, actions: Tensor | None, goals: Tensor, goal_actions: Tensor
    ) -> Tensor:
        """`discounted`, with the arguments of `distance_at`."""
        return self.discounted(rows.index_select(0, states), actions, rows.index_select(0, goals), goal_actions)

    def steps_to_goal(self, state: Tensor, goal: Tensor) -> Tensor:
        """(..., actions): the remaining steps after each action; the planner takes the action with the fewest.

        For state-action goals, the mean over a' of d((s, a), (g, a')) - 1: the path to g is the same for every a'.
        """
        distances = self.distance(state, None, goal, None)
        return distances.mean(-1) - 1 if self.goal_kind == "state-action" else distances.squeeze(-1)

    def project_(self) -> None:
        """Project constrained weights into their range; call it after every optimizer step."""
        self._call_in_modules("project_")

    def accelerate_(self) -> None:
        """Switch to compiled kernels where available: the same values up to rounding, but some seconds to compile."""
        self._call_in_modules("accelerate_")

    def _call_in_modules(self, name: str) -> None:
        for module in self.modules():
            # Looked up in the class: a failed attribute lookup in a module is slow.
            method = getattr(type(module), name, None)
            if method is not None and module is not self:
                method(module)


def pick(table: Tensor, index: Tensor, dim: int) -> Tensor:
    """The entries of `table` at `index` along `dim` (negative), which is removed.

    The leading dimensions of both broadcast.
    """
    leading = max(index.ndim, table.ndim + dim)
    index = index.reshape((1,) * (leading - index.ndim) + index.shape + (1,) * -dim)
    table = table.reshape((1,) * (leading - dim - table.ndim) + table.shape)
    return table.take_along_dim(index, dim).squeeze(dim)


def take(rows: Tensor, states: Tensor, actions: Tensor | None) -> Tensor:
    """Latents (n, size) of `actions`, or (n, actions, size) of all actions, from rows (states, actions, size)."""
    if actions is None:
        return rows.index_select(0, states)
    return rows.flatten(0, 1).index_select(0, states * rows.shape[1] + actions)


def pair_up(state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> tuple[Tensor, Tensor]:
    """Latents (..., actions, n) of states and goals as two tensors that broadcast to the requested pairs."""
    u = state if action is None else pick(state, action, -2)
    v = goal if goal_action is None else pick(goal, goal_action, -2)
    if goal_action is None:
        u = u.unsqueeze(-2)  # an axis for the goal's actions
    if action is None:
        v = v.unsqueeze(-2 if goal_action is not None else -3)  # an axis for the state's actions, before that one
    return u, v
