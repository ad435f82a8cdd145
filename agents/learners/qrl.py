"""Quasimetric RL: push all pairs apart, while no observed transition may cost more than one step.

    min over d, max over lambda >= 0:   E softplus(o - d(x, x')) + lambda (E e(t)^2 - epsilon^2)

with softplus(z) = softness log(1 + exp(z / softness)), x and x' random state-action pairs, also ones that were never
tried, and the excess e(t) = (d((s, a), (s', b)) - 1)^+ of an observed transition t = (s, a, s') and a random action b
with (s', b) != (s, a).
In a deterministic world d* costs exactly 1 there, and by the triangle inequality d <= d* wherever the data leads: the
largest d within the constraints is d*. What no constraint holds down is pushed up to the offset o.

One multiplier for the mean lets the few transitions that all long paths share, such as doors, pay for all others. With
`constraint: each`, every distinct transition with every b has its own, in an augmented Lagrangian:

    E softplus(o - d(x, x')) + E [lambda_tb e(t) + e(t)^2],   lambda_tb <- (lambda_tb + rate (d(t) - 1 - epsilon))^+

One per transition would not do: its mean over b is held by the actions that lead nowhere, at the expense of the one
that goes on.

Published versions work on states with a latent dynamics model; here an action is part of x.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qrl.agents.learners.base import Learner, Loss, encode_distinct
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.registry import register_learner
from qrl.agents.learners.settings import GoalSettings, QrlSettings
from qrl.envs.dataset import Dataset
from qrl.q_models.base import QModel


class MeanConstraint(nn.Module):
    """One multiplier lambda = softplus(raw) for the mean violation."""

    def __init__(self, settings: QrlSettings) -> None:
        super().__init__()
        self.epsilon = settings.epsilon
        # The inverse of softplus; log(expm1(multiplier)) would overflow.
        self.raw = nn.Parameter(torch.tensor(settings.multiplier + math.log(-math.expm1(-settings.multiplier))))

    def optimizer(self, lr: float) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=lr)

    def forward(self, local: Tensor, constraints: Tensor) -> tuple[Tensor, Tensor]:
        """The term of the model, and that of the multiplier, which ascends; `local`: distances of transitions."""
        violation = F.relu(local - 1).square().mean() - self.epsilon**2
        multiplier = F.softplus(self.raw)
        return multiplier.detach() * violation, -multiplier * violation.detach()

    def project_(self) -> None:
        pass

    @property
    def multipliers(self) -> Tensor:
        return F.softplus(self.raw.detach())


class EachConstraint(nn.Module):
    """One multiplier for every distinct transition and action after it."""

    def __init__(self, settings: QrlSettings, num_constraints: int) -> None:
        super().__init__()
        self.epsilon = settings.epsilon
        self.raw = nn.Parameter(torch.full((num_constraints,), float(settings.multiplier)))

    def optimizer(self, lr: float) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=lr)

    def forward(self, local: Tensor, constraints: Tensor) -> tuple[Tensor, Tensor]:
        excess = F.relu(local - 1)
        multipliers = self.raw.index_select(0, constraints)
        primal = (multipliers.detach() * excess + excess.square()).mean()
        return primal, -(multipliers * (local.detach() - 1 - self.epsilon)).sum()

    @torch.no_grad()
    def project_(self) -> None:
        self.raw.clamp_(min=0)

    @property
    def multipliers(self) -> Tensor:
        return self.raw.detach()


@register_learner("qrl", QrlSettings)
class QrlLearner(Learner):
    GOAL_KINDS = ("state-action",)
    NEEDS_QUASIMETRIC = True

    reports = ("loss_push", "violation", "multiplier", "transition_distance", "random_distance")
    settings: QrlSettings
    sampler: GoalSampler

    def __init__(self, model: QModel, observations: Tensor, dataset: Dataset, settings: QrlSettings, seed: int) -> None:
        super().__init__(model, observations, dataset, settings, seed)
        self.constraint: MeanConstraint | EachConstraint = (
            MeanConstraint(settings)
            if settings.constraint == "mean"
            else EachConstraint(settings, len(self.sampler.distinct[0]) * model.spec.num_actions)
        ).to(observations.device)
        self.multiplier_optimizer = self.constraint.optimizer(settings.multiplier_lr)

    def make_sampler(self, dataset: Dataset, seed: int) -> GoalSampler:
        return GoalSampler(dataset, GoalSettings(), seed)

    def loss(self) -> Loss:
        settings, device = self.settings, self.observations.device
        drawn = self.sampler.sample_constraints(settings.batch_size)
        transitions, s, a, following, b = (tensor.to(device) for tensor in drawn)
        x, y = ([tensor.to(device) for tensor in self.sampler.sample_any_pairs(len(s))] for _ in range(2))
        rows, (s_at, following_at, x_at, y_at) = encode_distinct(
            self.model, self.observations, s, following, x[0], y[0]
        )
        sources, goals = torch.cat([s_at, x_at]), torch.cat([following_at, y_at])
        distances = self.model.distance_at(rows, sources, torch.cat([a, x[1]]), goals, torch.cat([b, y[1]]))
        local, random = distances.tensor_split([len(s)])
        push = F.softplus(settings.offset - random, beta=1 / settings.softness).mean()
        primal, dual = self.constraint(local, transitions * self.model.spec.num_actions + b)
        # The dual term has a gradient for the multipliers only, and no value.
        value = push + primal + (dual - dual.detach())
        excess = F.relu(local.detach() - 1)
        reports = (push, excess.square().mean().sqrt(), self.constraint.multipliers, local.detach(), random.detach())
        return Loss(value, dict(zip(self.reports, reports, strict=True)))

    def after_step(self) -> None:
        self.constraint.project_()
