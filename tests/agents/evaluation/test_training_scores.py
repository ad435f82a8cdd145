import numpy as np
import pytest
import torch

from qrl import QModelSpec
from qrl.agents.evaluation.training_scores import random_success, score_planning
from qrl.agents.planning.planner import MAX_STEPS, Ids, Outcome, RandomPolicy, TablePolicy
from qrl.agents.planning.references import oracle_steps
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.layout import load_layout
from qrl.q_models import QModel
from tests.agents.worlds import corridor, without_layout


class Shifted(QModel):
    """The exact steps, off by a constant."""

    def encode(self, observations: torch.Tensor, counts: torch.Tensor | None = None) -> torch.Tensor:
        return torch.arange(len(observations))

    def steps_to_goal(self, state: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
        exact = oracle_steps(ground_truth(load_layout("traps")))
        return torch.tensor(exact)[state, goal] - 0.5


def test_scores_by_hand() -> None:
    dataset = corridor(3, "traps")
    model = Shifted(QModelSpec(18, 4, 0.95))
    scores = score_planning(model, torch.tensor(dataset.observations), dataset, seed=0)
    assert scores == {"success_rate": 1.0, "ranking_accuracy": 1.0, "signed_error": -0.5, "absolute_error": 0.5}


def test_training_walks_only_the_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []

    def walk(self: TablePolicy, truth: GroundTruth, starts: Ids, goals: Ids, max_steps: int = MAX_STEPS) -> Outcome:
        walks.append(len(starts))
        return original(self, truth, starts, goals, max_steps)

    original = TablePolicy.walk
    monkeypatch.setattr(TablePolicy, "walk", walk)
    dataset = corridor(3, "traps")
    score_planning(Shifted(QModelSpec(18, 4, 0.95)), torch.tensor(dataset.observations), dataset, seed=0)
    assert walks == [len(ground_truth(load_layout("traps")).all_tasks()[0])]


def test_random_actions_in_small_and_large_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = corridor(3, "traps")
    truth = ground_truth(load_layout("traps"))
    starts, goals = truth.all_tasks()
    walks = [RandomPolicy(4, seed).walk(truth, starts, goals).success.mean() for seed in range(20)]
    success = random_success(dataset, seed=0)
    assert success == pytest.approx(np.mean(walks), abs=4 * float(np.std(walks)))
    monkeypatch.setattr(GroundTruth, "tabulated", False)
    assert random_success(dataset, seed=0) == pytest.approx(np.mean(walks), abs=0.2)  # of 100 tasks


def test_data_without_a_layout_has_no_scores() -> None:
    dataset = without_layout(corridor(3))
    assert random_success(dataset, seed=0) is None
    assert score_planning(Shifted(QModelSpec(18, 4, 0.95)), torch.empty(0), dataset, seed=0) == {}


def test_chance_scores_less() -> None:
    class Ignorant(Shifted):
        def steps_to_goal(self, state: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
            shape = np.broadcast_shapes(state.shape, goal.shape)
            return torch.zeros(*shape, 4)

    dataset = corridor(3, "traps")
    scores = score_planning(Ignorant(QModelSpec(18, 4, 0.95)), torch.tensor(dataset.observations), dataset, seed=0)
    assert scores["success_rate"] < 0.5
    assert scores["ranking_accuracy"] < 0.5
    assert scores["signed_error"] == -scores["absolute_error"] < -1
