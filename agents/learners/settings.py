"""Settings of the learners. Nothing here imports torch, so that --help answers at once.

Each settings class builds its own learner: `settings.build(model, observations, dataset, seed)`.
"""

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from qrl.common.settings import Settings

if TYPE_CHECKING:
    from torch import Tensor

    from qrl.agents.learners.base import Learner
    from qrl.envs.dataset import Dataset
    from qrl.envs.graphs.dataset import GraphDataset
    from qrl.q_models.base import QModel


class GoalSettings(Settings):
    """Where goals come from: three probabilities that sum to 1."""

    current: float = Field(
        0.02, ge=0, le=1, description="probability of the transition's own state-action pair as goal"
    )
    future: float = Field(0.49, ge=0, le=1, description="probability of a later pair of the same trajectory")
    random: float = Field(0.49, ge=0, le=1, description="probability of a random pair of the whole dataset")
    offset: Literal["uniform", "geometric"] = Field(
        "uniform", description="offset of a future goal: uniform over the rest of the trajectory, or geometric"
    )
    geometric_discount: float = Field(0.95, gt=0, lt=1, description="a geometric offset is 1 + Geometric(1 - this)")

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = self.current + self.future + self.random
        if abs(total - 1) > 1e-6:
            raise ValueError(f"current + future + random must be 1, but sum to {total:g}")
        return self


Discount = Annotated[float, Field(gt=0, lt=1, description="gamma in D = gamma**d")]
BatchSize = Annotated[int, Field(ge=2, le=10**6, description="transitions or pairs of nodes per step")]
Epochs = Annotated[float, Field(gt=0, le=10**6, description="passes over the data, each of size / batch_size steps")]
MinSteps = Annotated[int, Field(ge=1, description="minimum number of training steps, however small the data")]
LearningRate = Annotated[float, Field(gt=0, description="Adam's learning rate, decayed to 0 by a cosine")]
Triplets = Annotated[int, Field(ge=1, description="triplets per step, if regularized")]


class LearnerSettings(Settings):
    """What all learners have in common; the defaults are those of offline Q-learning."""

    discount: Discount = 0.95
    batch_size: BatchSize = 1024
    epochs: Epochs = 100
    min_steps: MinSteps = 8000
    lr: LearningRate = 1e-3
    standardize: bool = Field(
        True, description="scale observations to mean 0 and standard deviation 1 over the distinct states"
    )
    triangle: float = Field(0, ge=0, description="weight of the triangle regularizer (the paper tries 0.3, 1 and 3)")
    triangle_triplets: Triplets = 341

    @abstractmethod
    def build(self, model: "QModel", observations: "Tensor", dataset: Any, seed: int) -> "Learner":
        """The learner with these settings; `observations` are the scaled states of the dataset."""

    def num_steps(self, size: int) -> int:
        """Training steps for a dataset of `size` transitions or pairs."""
        return max(self.min_steps, math.ceil(self.epochs * math.ceil(size / self.batch_size)))

    def learning_rate(self, step: int, num_steps: int) -> float:
        """The cosine schedule; a run that is extended follows the schedule of its new length from then on."""
        return self.lr * 0.5 * (1 + math.cos(math.pi * step / num_steps))


class MboldSettings(LearnerSettings):
    polyak: float = Field(0.9, ge=0, lt=1, description="fraction of its weights that the target keeps per step")
    conservative: float = Field(0, ge=0, description="weight of the conservative term logsumexp_b D(b) - D(a)")
    goals: GoalSettings = Field(GoalSettings(), description="where goals come from")

    def build(self, model: "QModel", observations: "Tensor", dataset: "Dataset", seed: int) -> "Learner":
        from qrl.agents.learners.mbold import MboldLearner

        return MboldLearner(model, observations, dataset, self, seed)


class RegressionSettings(LearnerSettings):
    """The paper's, for its large graph."""

    discount: Discount = 0.9
    epochs: Epochs = 80
    min_steps: MinSteps = 1
    lr: LearningRate = 1e-4
    triangle_triplets: Triplets = 342

    def build(self, model: "QModel", observations: "Tensor", dataset: "GraphDataset", seed: int) -> "Learner":
        from qrl.agents.learners.regression import RegressionLearner

        return RegressionLearner(model, observations, dataset, self, seed)
