"""A sound learner as a plugin would have it, and broken ones."""

from typing import Any

import numpy as np
import torch
from torch import nn

from qrl.agents.learners.base import Learner, Loss, discounted
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.settings import Goals, GoalSettings, LearnerSettings


class ToySettings(LearnerSettings):
    goals: Goals = GoalSettings(current=0, future=1, random=0)
    weight: float = 1.0


class Toy(Learner):
    """Regression on the hindsight steps of future goals."""

    reports: tuple[str, ...] = ("predicted",)
    settings: ToySettings
    sampler: GoalSampler

    def loss(self) -> Loss:
        batch = self.sampler.sample(self.settings.batch_size)
        predicted = discounted(
            self.model, self.observations, batch.states, batch.actions, batch.goals, batch.goal_actions
        )
        target = self.model.spec.discount**batch.hindsight
        return Loss(self.settings.weight * (predicted - target).square().mean(), {"predicted": predicted.detach()})


# Learners that could not resume, or not even step


class BareParameter(Toy):
    """The parameter is in no module, which alone are saved."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.scale = nn.Parameter(torch.ones(()))
        self.optimizer.add_param_group({"params": [self.scale]})

    def loss(self) -> Loss:
        value, reports = super().loss()
        return Loss(value * self.scale.square(), reports)


class CountingSGD(torch.optim.SGD):
    """As many optimizers do, it counts its steps in plain numbers."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        super().step(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["step"] = self.state[parameter].get("step", 0) + 1


class PlainNumbers(Toy):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.optimizer = CountingSGD(self.model.parameters(), lr=0.1)  # type: ignore[assignment]


class NeedsClosures(Toy):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.optimizer = torch.optim.LBFGS(self.model.parameters())  # type: ignore[assignment]


class ArrayState(Toy):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sampler.state_dict = lambda: {"order": np.arange(3)}  # type: ignore[method-assign]


class Raises(Toy):
    def loss(self) -> Loss:
        raise IndexError("no such state")
