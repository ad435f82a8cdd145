from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qrl.agents.runs.problems import PROBLEMS, GraphRegression, OfflineRL, problem_of
from qrl.agents.runs.settings import GraphTrainSettings, TrainSettings
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.graphs.collector import GraphSettings, collect_graph
from tests.agents.worlds import corridor, graph_settings, small_settings, without_layout

VALIDATED = ["validation_loss", "hindsight_consistency", "hindsight_excess", "hindsight_spearman"]


def test_settings_determine_the_problem() -> None:
    assert problem_of(TrainSettings()) is PROBLEMS["train-agent"]
    assert problem_of(GraphTrainSettings()) is PROBLEMS["train-graph"]


def test_trajectories() -> None:
    problem, settings = OfflineRL(), small_settings()
    dataset = problem.collect(settings)
    assert dataset.content_hash == corridor().content_hash
    observations, num_actions = problem.states(dataset)
    assert (observations.shape, num_actions) == ((10, 18), 4)
    assert problem.made_from(dataset) == settings.collector
    planning = ["success_rate", "ranking_accuracy", "signed_error", "absolute_error"]
    assert problem.scored(settings, dataset) == planning
    assert problem.scored(small_settings(validation=0.2), dataset) == [*planning, *VALIDATED]
    assert problem.notices(settings, dataset) == []


def test_data_of_ones_own() -> None:
    problem, dataset = OfflineRL(), without_layout(corridor(3))
    settings = small_settings(learner={"batch_size": 10_000})
    assert problem.made_from(dataset) is None
    assert problem.scored(settings, dataset) == []
    few, unscored = problem.notices(settings, dataset)
    assert few == f"the dataset has {dataset.num_transitions} transitions, fewer than a batch of 10000"
    assert unscored == (
        "the dataset has no world: nothing is evaluated, since no trajectories are held out; validation=0.1 holds out "
        "a tenth"
    )
    holding = small_settings(validation=0.3, learner={"batch_size": 10_000})
    assert problem.scored(holding, dataset) == VALIDATED
    training, held_out = problem.split(holding, dataset)
    assert held_out is not None
    assert problem.notices(holding, dataset) == [
        f"the dataset has {training.num_transitions} transitions, fewer than a batch of 10000",
        "the dataset has no world: instead of exact distances, 1 held-out trajectories of 3 validate the model",
    ]


def test_the_first_trajectories_of_a_file() -> None:
    """The settings name the number that is in the file, not the one that was collected."""
    collector = OfflineRL().made_from(corridor(20).first(6))
    assert collector is not None
    assert collector.trajectories == 6


def test_data_of_a_release_with_other_settings() -> None:
    dataset = corridor(2)
    header = dataset.header.model_copy(update={"collector": {"temperature": 0.5}})
    assert OfflineRL().made_from(replace(dataset, header=header)) is None


def test_graphs() -> None:
    problem, settings = GraphRegression(), graph_settings()
    dataset = problem.collect(settings)
    features, num_actions = problem.states(dataset)
    np.testing.assert_array_equal(features, dataset.features)
    assert num_actions == 1
    made_from = problem.made_from(dataset)
    assert isinstance(made_from, GraphSettings)
    assert collect_graph(made_from).content_hash == dataset.content_hash
    assert problem.scored(settings, dataset) == [
        "mse",
        "l1_error",
        "l1_error_clipped",
        "no_way_estimate",
        "no_way_estimate_clipped",
        "spearman",
    ]


@pytest.mark.parametrize("command", ["train-agent", "train-graph"])
def test_the_columns_in_training_have_metrics(command: str) -> None:
    problem = PROBLEMS[command]
    assert problem.command == command
    assert {metric.column for metric in problem.metrics if metric.in_training}


def test_a_stochastic_world_is_told_to_learners_that_assume_none() -> None:
    dataset = collect(CollectorSettings.from_values({"world": "teleport", "trajectories": 20}, "test"))
    problem = OfflineRL()

    def notices(**learner: Any) -> str:
        settings = TrainSettings.from_values({"learner": {"batch_size": 8, **learner}}, "test")
        return "; ".join(problem.notices(settings, dataset))

    assert notices(name="mbold") == ""
    for name in ("qrl", "mad"):
        assert f"{name} takes every transition in the data for certain" in notices(name=name)
    assert "learner.discount=0.9 are compared with exact ones for world.discount=0.95" in notices(discount=0.9)
    assert "certain" not in "; ".join(problem.notices(TrainSettings(), corridor()))
