import pytest

from qrl.agents.learners.settings import GoalSettings, LearnerSettings, MboldSettings, RegressionSettings
from qrl.common.errors import ConfigError


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
    ("key", "value"), [("lr", 1e300), ("lr", 1e-300), ("max_distance", 2e38), ("min_steps", 2**63), ("lr", 10**4000)]
)
def test_numbers_that_overflow_are_refused(key: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"^learner: {key}: ") as caught:
        MboldSettings.from_values({key: value}, "learner")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("cls", "discount", "epochs", "min_steps", "lr"),
    [(MboldSettings, 0.95, 1, 5000, 3e-3), (RegressionSettings, 0.9, 80, 1, 1e-4)],
)
def test_defaults(cls: type[LearnerSettings], discount: float, epochs: float, min_steps: int, lr: float) -> None:
    settings = cls()
    assert (settings.discount, settings.epochs, settings.min_steps, settings.lr) == (discount, epochs, min_steps, lr)
    assert settings.batch_size == 1024


def test_the_conservative_term_is_for_the_huber_loss_by_default() -> None:
    weights = [MboldSettings(loss=loss).conservative_weight for loss in ("huber", "mse")]
    assert weights == [1, 0]
    assert MboldSettings(loss="mse", conservative=0.5).conservative_weight == 0.5
    assert MboldSettings(conservative=0).conservative_weight == 0
