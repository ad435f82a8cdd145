import pytest
import torch

from qrl import QModelSpec, make_q_model
from qrl.agents.learners.mbold import MboldLearner
from qrl.agents.learners.regression import RegressionLearner
from qrl.agents.learners.settings import GoalSettings, LearnerSettings, MboldSettings, RegressionSettings
from qrl.common.errors import ConfigError
from qrl.envs.graphs.collector import GraphSettings, collect_graph
from tests.agents.worlds import corridor


def test_the_learning_rate_falls_to_zero() -> None:
    settings = MboldSettings(lr=1.0)
    assert settings.learning_rate(0, 10) == 1
    assert settings.learning_rate(5, 10) == pytest.approx(0.5)
    assert settings.learning_rate(10, 10) == pytest.approx(0)


def test_number_of_steps() -> None:
    settings = MboldSettings(batch_size=100, epochs=3, min_steps=5)
    assert settings.num_steps(1001) == 33
    assert settings.num_steps(10) == 5
    assert MboldSettings(batch_size=100, epochs=0.15, min_steps=1).num_steps(1000) == 2


def test_the_goal_probabilities_must_sum_to_one() -> None:
    with pytest.raises(ConfigError, match=r"goals: current \+ future \+ random must be 1, but sum to 0\.9"):
        GoalSettings.from_values({"current": 0.1, "future": 0.4, "random": 0.4}, "goals")


@pytest.mark.parametrize(
    ("cls", "discount", "epochs", "min_steps", "lr"),
    [(MboldSettings, 0.95, 100, 8000, 1e-3), (RegressionSettings, 0.9, 80, 1, 1e-4)],
)
def test_defaults_of_the_paper(
    cls: type[LearnerSettings], discount: float, epochs: float, min_steps: int, lr: float
) -> None:
    settings = cls()
    assert (settings.discount, settings.epochs, settings.min_steps, settings.lr) == (discount, epochs, min_steps, lr)
    assert settings.batch_size == 1024


def test_settings_build_their_learner() -> None:
    trajectories = corridor(5)
    model = make_q_model("euclidean", QModelSpec(18, 4, 0.95), hidden_sizes=(8,), latent_size=8)
    learner = MboldSettings(min_steps=7).build(model, torch.tensor(trajectories.observations), trajectories, 0)
    assert isinstance(learner, MboldLearner)
    assert learner.num_samples == trajectories.num_transitions
    graph = collect_graph(GraphSettings(kind="random-block", nodes=20, feature_size=4))
    model = make_q_model("euclidean", QModelSpec(4, 1, 0.9), hidden_sizes=(8,), latent_size=8)
    regression = RegressionSettings().build(model, torch.tensor(graph.features), graph, 0)
    assert isinstance(regression, RegressionLearner)
    assert regression.num_samples == len(graph.training_pairs)
