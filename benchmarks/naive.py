"""The baselines: what the fast forms are compared with, written as plainly as the formulas are.

A test compares one whole step of the learner with `NaiveLearner`, so this is also the reference for its correctness.
"""

import copy

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.learners.goal_sampler import Batch
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
    """Modified MBOLD as one would write it down: every row of the batch is encoded, and nothing is fused.

    For goals that are state-action pairs and no regulariser.
    """

    def __init__(self, model: QModel, observations: Tensor, settings: MboldSettings, num_steps: int) -> None:
        self.model = model.train()
        self.target = copy.deepcopy(model).eval()
        for module in (*self.model.modules(), *self.target.modules()):
            if isinstance(module, IQE):
                module.union = textbook_union
        self.observations = observations
        self.settings = settings
        self.num_steps = num_steps
        self.step = 0
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)

    def update(self, batch: Batch) -> Tensor:
        """One step; returns the loss."""
        gamma, size = self.model.spec.discount, len(batch.states)
        with torch.no_grad():
            rows = self.target.encode(self.observations[torch.cat([batch.next_states, batch.goals])])
            ahead = self.target.discounted(rows[:size], None, rows[size:], batch.goal_actions)
            y = gamma * ahead.amax(-1)
            y = torch.where(batch.next_states == batch.goals, gamma, y)
            y = torch.where((batch.states == batch.goals) & (batch.actions == batch.goal_actions), 1.0, y)
        rows = self.model.encode(self.observations[torch.cat([batch.states, batch.goals])])
        predicted = self.model.discounted(rows[:size], batch.actions, rows[size:], batch.goal_actions)
        loss = F.mse_loss(predicted, y.clamp(0, 1))
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate(self.step, self.num_steps)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.model.project_()
        self.step += 1
        with torch.no_grad():
            for mine, trained in zip(self.target.parameters(), self.model.parameters(), strict=True):
                mine.copy_(self.settings.polyak * mine + (1 - self.settings.polyak) * trained)
            for kept, counted in zip(self.target.buffers(), self.model.buffers(), strict=True):
                kept.copy_(counted)
        return loss.detach()
