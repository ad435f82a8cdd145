"""Two changes of the default recipe that did not help, as a learner of their own: for the study of them in training.md.

sweep-agents docs/training/variants/study.yaml --plugin docs.training_variants
"""

import torch
from pydantic import Field

from qrl import register_learner
from qrl.agents.learners.base import PolyakAverage, make_target
from qrl.agents.learners.mbold import MboldLearner
from qrl.agents.learners.settings import MboldSettings
from qrl.envs.dataset import Dataset
from qrl.q_models.base import QModel

RENEWING = 50  # batches without a step, from which batch normalization gets the running statistics of averaged weights


class VariantSettings(MboldSettings):
    warm_up: int = Field(0, ge=0, description="steps over which the learning rate rises to that of the schedule")
    averaging: float = Field(0, ge=0, lt=1, description="fraction that averaged weights keep per step; 0: no averaging")

    def learning_rate(self, step: int, num_steps: int) -> float:
        return super().learning_rate(step, num_steps) * min(1, (step + 1) / max(self.warm_up, 1))


@register_learner("mbold-variant", VariantSettings)
class Variant(MboldLearner):
    """mbold with a rising learning rate, or with averaged weights in place of the last ones at the end of training."""

    settings: VariantSettings

    def __init__(
        self, model: QModel, observations: torch.Tensor, dataset: Dataset, settings: VariantSettings, seed: int
    ):
        super().__init__(model, observations, dataset, settings, seed)
        self.averaged = make_target(model) if settings.averaging > 0 else None
        if self.averaged is not None:
            self._moving = PolyakAverage(self.averaged, model, settings.averaging)

    def after_step(self) -> None:
        super().after_step()
        if self.averaged is None:
            return
        self._moving.update()
        if self.steps_done + 1 == self.num_steps:
            self.model.load_state_dict(self.averaged.state_dict())
            with torch.no_grad():
                for _ in range(RENEWING):
                    self.loss()
