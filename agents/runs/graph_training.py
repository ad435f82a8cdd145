"""Training on a graph: pairs of nodes and regression make a run."""

from dataclasses import dataclass

import torch

from qrl.agents.scaling import fit_scaling
from qrl.agents.learners.regression import PairSampler, RegressionLearner, score_pairs
from qrl.common.seeds import derived_seed
from qrl.agents.runs.settings import GraphTrainSettings
from qrl.agents.runs.training_run import Metrics, Training, build_model, train
from qrl.envs.graphs.collector import collect_graph
from qrl.envs.graphs.dataset import GraphDataset
from qrl.spec import QModelSpec

__all__ = ["GraphTraining", "resume", "start", "train"]


@dataclass
class GraphTraining(Training):
    SETTINGS = GraphTrainSettings
    DATASET = GraphDataset

    @classmethod
    def collect(cls, settings: GraphTrainSettings) -> GraphDataset:
        return collect_graph(settings.graph)

    @classmethod
    def build(cls, settings: GraphTrainSettings, dataset: GraphDataset) -> "GraphTraining":
        learner = settings.learner
        model, params = build_model(settings, QModelSpec(dataset.features.shape[1], 1, learner.discount))
        features = torch.tensor(dataset.features)
        scaling = fit_scaling(features, learner.standardize)
        num_steps = learner.num_steps(len(dataset.training_pairs))
        return cls(
            settings=settings,
            dataset=dataset,
            model_params=params,
            learner=RegressionLearner(model, scaling(features).to(settings.device), learner, num_steps),
            sampler=PairSampler(dataset.training, learner.discount, derived_seed(settings.seed, "batches")),
            scaling=scaling,
        )

    @property
    def loss_parts(self) -> list[str]:
        return ["fit", *(["triangle"] if self.settings.learner.triangle > 0 else [])]

    @property
    def evaluated(self) -> list[str]:
        return list(self.SETTINGS.EVALUATED)

    def evaluate(self) -> Metrics:
        """On the validation pairs."""
        return score_pairs(self.learner.model, self.learner.observations, self.dataset.validation)


start, resume = GraphTraining.start, GraphTraining.resume
