"""What the two training commands learn from, and how their models are scored while they learn.

Everything else about a run is the same for both. Nothing here imports torch at the top, so that --help answers at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qrl.agents.evaluation.graph_metrics import GRAPH_METRICS, error_of_mean
from qrl.agents.evaluation.metric import Metric, columns
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.learners.settings import LearnerSettings, Learns
from qrl.agents.runs.settings import MIN_TRAJECTORIES, VALIDATION, GraphTrainSettings, RunSettings, TrainSettings
from qrl.common.errors import ConfigError
from qrl.common.files import is_file
from qrl.common.settings import Settings
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.graphs.collector import GraphSettings, collect_graph
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.layout import builtin_layouts, load_layout
from qrl.envs.npz import Data
from qrl.envs.split import split
from qrl.envs.world import World

if TYPE_CHECKING:
    from torch import Tensor

    from qrl.agents.evaluation.validation import Validation
    from qrl.q_models.base import QModel


SettingsT = TypeVar("SettingsT", bound=Settings)


class Problem(ABC):
    """A training command: its settings, its data and the metrics of its models."""

    command: str
    settings_type: type[RunSettings]
    dataset_type: type[Data]
    metrics: list[Metric]

    @abstractmethod
    def collect(self, settings: Any) -> Any:
        """The data that the settings describe."""

    @abstractmethod
    def states(self, dataset: Any) -> tuple[NDArray[np.float32], int]:
        """The observations (states, dim) of the dataset, and the number of actions."""

    @abstractmethod
    def made_from(self, dataset: Any) -> Settings | None:
        """The settings that a dataset was made from; None for data of the user's own."""

    def resolve(self, settings: Any, dataset: Any) -> Any:
        """The settings with what follows from the data."""
        return settings.with_data(self.made_from(dataset) or settings.data)

    @abstractmethod
    def check_source(self, settings: Any, dataset: Path) -> None:
        """Refuse a data file that was made from another file, which has changed since."""

    def split(self, settings: Any, dataset: Any) -> tuple[Any, Any]:
        """The data to learn from, and what is held out of it, if anything is."""
        return dataset, None

    @abstractmethod
    def score(
        self,
        model: "QModel",
        observations: "Tensor",
        dataset: Any,
        seed: int,
        learns: Learns,
        validation: "Validation | None",
    ) -> dict[str, float]:
        """The metrics of a model, by column; `validation`: on what is held out."""

    def scored_states(self, dataset: Any, seed: int) -> NDArray[np.float32] | None:
        """What `score` observes of the states, where that is not the data itself."""
        return None

    def scored(self, settings: Any, dataset: Any) -> list[str]:
        """The columns that `score` gives."""
        return [name for name, metric in columns(self.metrics).items() if metric.in_training]

    def notices(self, settings: Any, dataset: Any) -> list[str]:
        """What a user may want to know about the data before training."""
        return []

    def remarks(self, name: str, scores: Mapping[str, float], dataset: Any, seed: int) -> list[str]:
        """What a user should know about the last scores of a model."""
        return []


class OfflineRL(Problem):
    """train-agent: trajectories of a world."""

    command = "train-agent"
    settings_type = TrainSettings
    dataset_type = Dataset
    metrics = METRICS

    def collect(self, settings: TrainSettings) -> Dataset:
        return collect(settings.collector, progress=True)

    def states(self, dataset: Dataset) -> tuple[NDArray[np.float32], int]:
        return dataset.observations, dataset.header.spaces.num_actions

    def made_from(self, dataset: Dataset) -> CollectorSettings | None:
        header = dataset.header
        if header.collector is None:
            return None
        more: dict[str, Any] = {"trajectories": dataset.num_episodes}
        if header.layout_name is not None:
            more["layout"] = header.layout_name
        if header.world is not None:
            more["world"] = {"name": header.world.name, **header.world.params}
        return _settings(CollectorSettings, header.collector | more)

    def check_source(self, settings: TrainSettings, dataset: Path) -> None:
        layout = settings.collector.layout
        if settings.collector.world is not None or layout in builtin_layouts() or not is_file(Path(layout)):
            return
        if Dataset.load(dataset).header.layout != load_layout(layout).text:
            raise ConfigError(
                f"collector.layout: {layout} has changed since {dataset} was collected in it; put it back, or name "
                "another folder with out=..."
            )

    def resolve(self, settings: TrainSettings, dataset: Dataset) -> TrainSettings:
        """Trajectories of an unknown world are held out unless the settings say otherwise: nothing else validates."""
        settings = super().resolve(settings, dataset)
        if settings.validation is not None or dataset.world is not None:
            return settings
        enough = dataset.num_episodes >= MIN_TRAJECTORIES
        return settings.model_copy(update={"validation": VALIDATION if enough else 0.0})

    def split(self, settings: TrainSettings, dataset: Dataset) -> tuple[Dataset, Dataset | None]:
        return split(dataset, settings.validation) if settings.validation else (dataset, None)

    def score(
        self,
        model: "QModel",
        observations: "Tensor",
        dataset: Dataset,
        seed: int,
        learns: Learns,
        validation: "Validation | None",
    ) -> dict[str, float]:
        from qrl.agents.evaluation.training_scores import score_planning

        return score_planning(model, observations, dataset, seed, learns, validation)

    def scored_states(self, dataset: Dataset, seed: int) -> NDArray[np.float32] | None:
        """Where every visit has an observation of its own, a new one of each state."""
        if not dataset.noisy or dataset.world is None:
            return None
        return dataset.world.observe(np.arange(dataset.world.num_states), np.random.default_rng(seed))

    def scored(self, settings: TrainSettings, dataset: Dataset) -> list[str]:
        known = columns(self.metrics)
        return [
            name
            for name in super().scored(settings, dataset)
            if (settings.validation if known[name].of_held_out else dataset.world is not None)
        ]

    def remarks(self, name: str, scores: Mapping[str, float], dataset: Dataset, seed: int) -> list[str]:
        from qrl.agents.evaluation.notices import chance_notices
        from qrl.agents.evaluation.training_scores import random_success

        success = scores.get("success_rate")
        return [] if success is None else chance_notices(name, success, random_success(dataset, seed))

    def notices(self, settings: TrainSettings, dataset: Dataset) -> list[str]:
        notices = []
        training, held_out = self.split(settings, dataset)
        transitions, batch = training.num_transitions, settings.learner.batch_size
        if transitions < batch:
            notices.append(f"the dataset has {transitions} transitions, fewer than a batch of {batch}")
        if dataset.world is not None:
            notices += [*dataset.world.notices, *_chance_notices(settings.learner, dataset.world)]
        elif held_out is not None:
            notices.append(
                f"the dataset has no world: instead of exact distances, {held_out.num_episodes:,} held-out "
                f"trajectories of {dataset.num_episodes:,} validate the model"
            )
        else:
            notices.append(
                "the dataset has no world: nothing is evaluated, since no trajectories are held out; validation=0.1 "
                "holds out a tenth"
            )
        return notices


class GraphRegression(Problem):
    """train-graph: distances between nodes of a graph."""

    command = "train-graph"
    settings_type = GraphTrainSettings
    dataset_type = GraphDataset
    metrics = GRAPH_METRICS

    def collect(self, settings: GraphTrainSettings) -> GraphDataset:
        return collect_graph(settings.graph)

    def states(self, dataset: GraphDataset) -> tuple[NDArray[np.float32], int]:
        return dataset.features, 1

    def made_from(self, dataset: GraphDataset) -> GraphSettings | None:
        return _settings(GraphSettings, dataset.header.settings) if dataset.header.settings else None

    def check_source(self, settings: GraphTrainSettings, dataset: Path) -> None:
        """Lists of edges are too large to be read again each time."""

    def notices(self, settings: GraphTrainSettings, dataset: GraphDataset) -> list[str]:
        error = error_of_mean(dataset.training_distances, dataset.validation_distances, settings.learner.discount)
        return [f"predicting the mean of gamma^d for every pair has mse {error:.4g}; a useful model has less"]

    def score(
        self,
        model: "QModel",
        observations: "Tensor",
        dataset: GraphDataset,
        seed: int,
        learns: Learns,
        validation: "Validation | None",
    ) -> dict[str, float]:
        from qrl.agents.evaluation.graph_scores import score_validation

        return score_validation(model, observations, dataset, seed)


def _chance_notices(learner: LearnerSettings, world: World) -> list[str]:
    """What a user may want to know of learning in a stochastic world."""
    notices = []
    if not world.deterministic and learner.CERTAIN:
        notices.append(
            f"the world is stochastic, and {learner.name} takes every transition in the data for certain: its "
            "distances are those of lucky paths"
        )
    if not world.deterministic and learner.discount != world.discount:
        notices.append(
            f"distances learned with learner.discount={learner.discount} are compared with exact ones for "
            f"world.discount={world.discount}: in a stochastic world they differ"
        )
    return notices


def _settings(cls: type[SettingsT], values: dict[str, Any]) -> SettingsT | None:
    """Settings from the header of a file; None where another release had other keys."""
    try:
        return cls.from_values(values, "dataset header")
    except ConfigError:
        return None


PROBLEMS: dict[str, Problem] = {problem.command: problem for problem in (OfflineRL(), GraphRegression())}


def problem_of(settings: RunSettings) -> Problem:
    return next(problem for problem in PROBLEMS.values() if isinstance(settings, problem.settings_type))
