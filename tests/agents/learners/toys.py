"""A sound learner as a plugin would have it, from which tests derive broken ones."""

from torch import Tensor

from qrl.agents.learners.base import Learner, Loss, discounted
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.settings import GoalSettings, LearnerSettings
from qrl.envs.dataset import Dataset
from qrl.q_models.base import QModel


class ToySettings(LearnerSettings):
    weight: float = 1.0


class Toy(Learner):
    """Regression on the hindsight steps of future goals."""

    reports: tuple[str, ...] = ("predicted",)
    sampler: GoalSampler

    def __init__(self, model: QModel, observations: Tensor, dataset: Dataset, settings: ToySettings, seed: int) -> None:
        super().__init__(model, observations, dataset, settings, seed)
        self.settings = settings
        self.sampler = GoalSampler(dataset, GoalSettings(current=0, future=1, random=0), seed)

    def loss(self) -> Loss:
        batch = self.sampler.sample(self.settings.batch_size)
        predicted = discounted(
            self.model, self.observations, batch.states, batch.actions, batch.goals, batch.goal_actions
        )
        target = self.model.spec.discount**batch.hindsight
        return Loss(self.settings.weight * (predicted - target).square().mean(), {"predicted": predicted.detach()})
