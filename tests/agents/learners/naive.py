"""The plainest implementation of a training step: the reference for correctness, and the baseline of the benchmarks."""

import copy

import torch
from torch import Tensor

from qrl.agents.learners.goal_sampler import Batch
from qrl.agents.learners.mbold import PairTriplets
from qrl.agents.learners.settings import MboldSettings
from qrl.heads import IQE
from qrl.q_models.base import QModel


def textbook_union(u: Tensor, v: Tensor) -> Tensor:
    """The length of the union over j of [u_j, max(u_j, v_j)]: sort all 2 l end points and count open intervals."""
    ends, order = torch.cat([u, torch.maximum(u, v)], -1).sort(-1)
    change = torch.where(order < u.shape[-1], 1, -1)
    covered = change.cumsum(-1)[..., :-1] > 0
    return (covered * (ends[..., 1:] - ends[..., :-1])).sum(-1)


class NaiveLearner:
    """Modified MBOLD as one would write it down: every row of the batch is encoded, and nothing is fused."""

    def __init__(self, model: QModel, observations: Tensor, settings: MboldSettings, num_steps: int) -> None:
        self.model = model.train()
        self.target = copy.deepcopy(model).eval()
        for module in (*self.model.modules(), *self.target.modules()):
            if isinstance(module, IQE):
                module.union = textbook_union
        self.observations = observations
        self.settings = settings
        self.num_steps = num_steps
        self.steps_done = 0
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)

    def step(self, batch: Batch, triplets: PairTriplets | None = None) -> Tensor:
        """One training step; returns the loss."""
        loss = self._loss(batch, self._targets(batch), triplets)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate(self.steps_done, self.num_steps)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.model.project_()
        self.steps_done += 1
        self._update_target()
        return loss.detach()

    @torch.no_grad()
    def _targets(self, batch: Batch) -> Tensor:
        gamma, size = self.target.spec.discount, len(batch.states)
        rows = self.target.encode(self.observations[torch.cat([batch.next_states, batch.goals])])
        y = gamma * self.target.discounted(rows[:size], None, rows[size:], batch.goal_actions).amax(-1)
        if self.target.goal_kind == "state":
            y[batch.next_states == batch.goals] = 1
        else:
            y[batch.next_states == batch.goals] = gamma
            y[(batch.states == batch.goals) & (batch.actions == batch.goal_actions)] = 1
        return y.clamp(0, 1)

    def _loss(self, batch: Batch, y: Tensor, triplets: PairTriplets | None) -> Tensor:
        queries = [(batch.states, batch.actions, batch.goals, batch.goal_actions)]
        if triplets is not None:
            first, second, third = zip(triplets.states, triplets.actions, strict=True)
            queries += [(*first, *second), (*second, *third), (*first, *third)]
        s, a, g, b = (torch.cat(parts) for parts in zip(*queries, strict=True))
        rows = self.model.encode(self.observations[torch.cat([s, g])])
        if not self.settings.conservative_weight and triplets is None:  # the other actions are not needed
            return (self.model.discounted(rows[: len(s)], a, rows[len(s) :], b) - y).square().mean()
        all_actions = self.model.discounted(rows[: len(s)], None, rows[len(s) :], b)
        predicted = all_actions.gather(-1, a[:, None]).squeeze(-1)
        size = len(y)
        loss = (predicted[:size] - y).square().mean()
        loss = (
            loss
            + self.settings.conservative_weight * (all_actions[:size].exp().mean(-1).log() - predicted[:size]).mean()
        )
        if triplets is not None:
            xy, yz, xz = predicted[size:].view(3, -1)
            if self.model.goal_kind == "state":
                yz = self.model.spec.discount * all_actions[size:].unflatten(0, (3, -1))[1].amax(-1)
            loss = loss + self.settings.triangle * (xy * yz - xz).clamp(min=0).square().mean()
        return loss

    @torch.no_grad()
    def _update_target(self) -> None:
        polyak = self.settings.polyak
        for averaged, parameter in zip(self.target.parameters(), self.model.parameters(), strict=True):
            averaged.copy_(polyak * averaged + (1 - polyak) * parameter)
        for copied, buffer in zip(self.target.buffers(), self.model.buffers(), strict=True):
            copied.copy_(buffer)
