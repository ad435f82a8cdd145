"""Implicit Q-learning: as mbold, but the best action of the next state is sought among the actions seen.

A value V(s, y) of states is an upper expectile of the D of the actions that the data takes in s:

    loss_value = E |tau - 1(u < 0)| u^2,   u = D_target((s, a), y) - V(s, y)
    loss_td    = E (D((s, a), y) - target)^2,   target = 1 if (s, a) = y, gamma if s' = g, else gamma V(s', y)

For goals g that are states, the target is 1 if s' = g, else gamma V(s', g). V is a second network of the model's kind,
in which the first action stands for "before any action".
"""

import copy

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.learners.base import (
    DISCOUNT_REPORTS,
    Learner,
    Loss,
    PolyakAverage,
    discount_reports,
    discounted,
    make_target,
)
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.mbold import arrival_targets
from qrl.agents.learners.registry import register_learner
from qrl.agents.learners.settings import IqlSettings
from qrl.envs.dataset import Dataset
from qrl.q_models.base import QModel


def expectile_loss(difference: Tensor, expectile: float) -> Tensor:
    """Mean of |tau - 1(u < 0)| u^2."""
    return ((expectile - (difference < 0).to(difference.dtype)).abs() * difference.square()).mean()


@register_learner("iql", IqlSettings)
class IqlLearner(Learner):
    reports = ("loss_td", "loss_value", *DISCOUNT_REPORTS)
    settings: IqlSettings
    sampler: GoalSampler

    def __init__(self, model: QModel, observations: Tensor, dataset: Dataset, settings: IqlSettings, seed: int) -> None:
        super().__init__(model, observations, dataset, settings, seed)
        self.target = make_target(model)
        self._average = PolyakAverage(self.target, model, settings.polyak)
        self.value = copy.deepcopy(model)
        self.optimizer.add_param_group({"params": list(self.value.parameters())})

    def loss(self) -> Loss:
        batch = self.sampler.sample(self.settings.batch_size).to(self.observations.device)
        s, a, g, b = batch.states, batch.actions, batch.goals, batch.goal_actions
        before_any = torch.zeros_like(a)
        with torch.no_grad():
            q = discounted(self.target, self.observations, s, a, g, b)
            training = self.value.training
            self.value.eval()  # the running statistics are those of the states, not of the next states
            following = discounted(self.value, self.observations, batch.next_states, before_any, g, b)
            self.value.train(training)
            y = arrival_targets(self.model.spec.discount * following, batch, self.model)
        predicted = discounted(self.model, self.observations, s, a, g, b)
        value = discounted(self.value, self.observations, s, before_any, g, b)
        td, fit = F.mse_loss(predicted, y), expectile_loss(q - value, self.settings.expectile)
        return Loss(td + fit, {"loss_td": td, "loss_value": fit, **discount_reports(predicted, y, self.model)})

    def after_step(self) -> None:
        self.value.project_()
        self._average.update()
