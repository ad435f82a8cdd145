"""Training an agent: a dataset, a goal sampler and modified MBOLD make a run."""

from dataclasses import dataclass

import torch

from qrl.agents.evaluation.evaluator import score
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.mbold import MboldLearner
from qrl.agents.scaling import fit_scaling
from qrl.common.seeds import derived_seed
from qrl.agents.runs.settings import TrainSettings
from qrl.agents.runs.training_run import Metrics, Training, build_model, train
from qrl.envs.collector import collect
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.spec import QModelSpec

__all__ = ["AgentTraining", "resume", "start", "train"]


@dataclass
class AgentTraining(Training):
    truth: GroundTruth | None

    SETTINGS = TrainSettings
    DATASET = Dataset

    @classmethod
    def collect(cls, settings: TrainSettings) -> Dataset:
        return collect(settings.collector, progress=True)

    @classmethod
    def build(cls, settings: TrainSettings, dataset: Dataset) -> "AgentTraining":
        learner = settings.learner
        spaces = dataset.header.spaces
        model, params = build_model(settings, QModelSpec(spaces.observation_dim, spaces.num_actions, learner.discount))
        observations = torch.tensor(dataset.observations)
        scaling = fit_scaling(observations, learner.standardize)
        num_steps = learner.num_steps(dataset.num_transitions)
        return cls(
            settings=settings,
            dataset=dataset,
            model_params=params,
            learner=MboldLearner(model, scaling(observations).to(settings.device), learner, num_steps),
            sampler=GoalSampler(dataset, learner.goals, derived_seed(settings.seed, "batches")),
            scaling=scaling,
            truth=None if dataset.layout is None else ground_truth(dataset.layout),
        )

    @property
    def notices(self) -> list[str]:
        found = []
        transitions, batch = self.dataset.num_transitions, self.settings.learner.batch_size
        if transitions < batch:
            found.append(f"the dataset has {transitions} transitions, fewer than a batch of {batch}: many are repeated")
        if self.truth is None:
            found.append("the dataset has no layout: nothing is evaluated against the truth")
        return found

    @property
    def loss_parts(self) -> list[str]:
        learner = self.settings.learner
        optional = {"conservative": learner.conservative > 0, "triangle": learner.triangle > 0}
        return ["td", *(name for name, used in optional.items() if used)]

    @property
    def evaluated(self) -> list[str]:
        return [] if self.truth is None else list(self.SETTINGS.EVALUATED)

    def evaluate(self) -> Metrics:
        if self.truth is None:
            return {}
        seed = derived_seed(self.settings.seed, f"evaluation {self.learner.step}")
        return score(self.learner.model, self.learner.observations, self.truth, seed)


start, resume = AgentTraining.start, AgentTraining.resume
