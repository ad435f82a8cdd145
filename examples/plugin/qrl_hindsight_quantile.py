"""A custom learner: regression on a low quantile of the steps that the data takes from one pair to another."""

import torch
from pydantic import Field
from torch import Tensor

from qrl import register_learner
from qrl.agents.learners.base import Learner, Loss, encode_distinct
from qrl.agents.learners.settings import Goals, GoalSettings, LearnerSettings


class HindsightQuantileSettings(LearnerSettings):
    goals: Goals = GoalSettings(current=0, future=1, random=0)
    quantile: float = Field(0.1, gt=0, lt=1, description="quantile of the hindsight steps that d estimates (tau)")


def pinball_loss(difference: Tensor, quantile: float) -> Tensor:
    """Mean of max(tau u, (tau - 1) u)."""
    return torch.maximum(quantile * difference, (quantile - 1) * difference).mean()


@register_learner("hindsight-quantile", HindsightQuantileSettings)
class HindsightQuantile(Learner):
    """Hindsight quantile regression: a short path of the data between two pairs.

        loss = E max(tau u, (tau - 1) u),   u = h - d(x, y)

    the pinball loss, with y = (g, b) a random pair h steps after x = (s, a) on the same trajectory. Its optimum is the
    tau-quantile of h given x and y. In a deterministic world h is at least the shortest path, which a low quantile
    approaches where the data connects x and y often. Pairs that no trajectory connects have no target of their own.
    """

    GOAL_KINDS = ("state-action",)

    reports = ("overestimated",)
    settings: HindsightQuantileSettings

    def loss(self) -> Loss:
        batch = self.sampler.sample(self.settings.batch_size).to(self.observations.device)
        rows, (s, g) = encode_distinct(self.model, self.observations, batch.states, batch.goals)
        distance = self.model.distance_at(rows, s, batch.actions, g, batch.goal_actions)
        difference = batch.hindsight - distance
        overestimated = (difference.detach() < 0).to(distance.dtype)  # a fraction that should become tau
        return Loss(pinball_loss(difference, self.settings.quantile), {"overestimated": overestimated})
