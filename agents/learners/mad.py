"""Minimum action distance: regression on hindsight steps, with a push between random pairs.

    w1 E (d(x_i, x_j) / h - 1)^2 + w2 E ((1 - d(x, x') / d_max)^+)^2 + w3 E [((d(x_i, x_j) - h)^+)^2 | h <= k]

with pairs x_i, x_j = (s, a) of one trajectory that are h = j - i steps apart, and random pairs x, x' of the data. h is
an upper bound of d*, in a deterministic world: the regression alone would learn the mean path of the data. The push and
the bound, which is strict only for near pairs, pull the distance towards the shortest path.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.learners.base import Learner, Loss, encode_distinct
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.registry import register_learner
from qrl.agents.learners.settings import MadSettings


def mad_terms(distance: Tensor, steps: Tensor, random: Tensor, settings: MadSettings) -> tuple[Tensor, Tensor, Tensor]:
    """The three terms without weights, for `distance` and hindsight `steps`, and distances of `random` pairs."""
    hindsight = _mean((distance / steps - 1).square())
    push = F.relu(1 - random / settings.max_distance).square().mean()
    near = steps <= settings.bound_steps
    bound = _mean(F.relu(distance - steps)[near].square())
    return hindsight, push, bound


def _mean(values: Tensor) -> Tensor:
    """The mean; 0 of no values, as where no goal of the batch is later on its trajectory."""
    return values.sum() / max(len(values), 1)


@register_learner("mad", MadSettings)
class MadLearner(Learner):
    GOAL_KINDS = ("state-action",)

    reports = ("loss_hindsight", "loss_push", "loss_bound", "hindsight_distance", "random_distance")
    settings: MadSettings
    sampler: GoalSampler

    def loss(self) -> Loss:
        settings, device = self.settings, self.observations.device
        batch = self.sampler.sample(settings.batch_size).to(device)
        g, b = (tensor.to(device) for tensor in self.sampler.sample_pairs(settings.batch_size))
        rows, (s_at, goals_at, g_at) = encode_distinct(self.model, self.observations, batch.states, batch.goals, g)
        distances = self.model.distance_at(
            rows,
            torch.cat([s_at, s_at]),
            batch.actions.repeat(2),
            torch.cat([goals_at, g_at]),
            torch.cat([batch.goal_actions, b]),
        )
        distance, random = distances.chunk(2)
        ahead = (batch.hindsight > 0) & batch.hindsight.isfinite()
        terms = mad_terms(distance[ahead], batch.hindsight[ahead], random, settings)
        weights = (settings.hindsight_weight, settings.push_weight, settings.bound_weight)
        value = sum((weight * term for weight, term in zip(weights, terms, strict=True)), torch.zeros_like(terms[0]))
        reports = (*terms, _mean(distance[ahead].detach()), random.detach())
        return Loss(value, dict(zip(self.reports, reports, strict=True)))
