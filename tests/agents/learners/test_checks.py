"""The contract check of learners passes for all of qrl's, and names the point that a broken one breaks."""

import itertools
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from qrl import QModelSpec, list_learners, make_q_model, register_learner
from qrl.agents.learners.base import Learner, Loss
from qrl.agents.learners.checks import quick_check
from qrl.agents.learners.settings import LearnerSettings
from qrl.common.errors import ConfigError
from qrl.errors import ContractError
from qrl.q_models.base import QModel
from qrl.testing import check_learner
from tests.agents.learners.toys import (
    ArrayState,
    BareParameter,
    NeedsClosures,
    PlainNumbers,
    Raises,
    Toy,
    ToySettings,
)
from tests.agents.worlds import corridor

pytestmark = pytest.mark.usefixtures("restored_registry")


@pytest.mark.parametrize("name", list_learners())
def test_every_learner_passes(name: str) -> None:
    check_learner(name)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("mbold", {"conservative": 0.1, "triangle": 1, "triangle_triplets": 9, "goals": {"balanced": 0.5}}),
        ("mbold", {"loss": "huber", "bound": "graph"}),
        ("qrl", {"constraint": "each"}),
    ],
)
def test_learners_pass_with_their_options(name: str, settings: dict[str, Any]) -> None:
    check_learner(name, **settings)


def test_the_check_keeps_the_random_state() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    check_learner("gcbc")
    assert torch.equal(torch.get_rng_state(), before)


class Undecided(ToySettings):
    LEARNS = "values"  # type: ignore[assignment]


class Shortened(ToySettings):
    weights: Any = (1, 2)  # a tuple, which JSON makes a list


class OtherReports(Toy):
    reports = ("predicted", "expected")


class ReportsTwice(Toy):
    reports = ("predicted", "predicted")


class NaNReport(Toy):
    def loss(self) -> Loss:
        value, _ = super().loss()
        return Loss(value, {"predicted": torch.tensor(torch.nan)})


class ReportsNumbers(Toy):
    def loss(self) -> Loss:
        return Loss(super().loss().value, {"predicted": 0.5})  # type: ignore[dict-item]


class ReportsUnasked(Toy):
    def step(self, log: bool = True) -> dict[str, float]:
        return super().step(log=True)


class GlobalRandomness(Toy):
    def loss(self) -> Loss:
        value, reports = super().loss()
        return Loss(value * (1 + torch.rand(())), reports)


class Unseeded(Toy):
    fresh: ClassVar = itertools.count()

    def __init__(self, model: QModel, observations: Tensor, dataset: Any, settings: ToySettings, seed: int) -> None:
        super().__init__(model, observations, dataset, settings, next(self.fresh))


class LogsMore(Toy):
    """Logging draws another batch."""

    def step(self, log: bool = True) -> dict[str, float]:
        if log:
            self.sampler.sample(3)
        return super().step(log)


class Counts(Toy):
    """The weight of its loss grows with a number that is not saved."""

    count = 0

    def loss(self) -> Loss:
        value, reports = super().loss()
        self.count += 1
        return Loss(value * (1 + self.count), reports)


class ForgetsRandomness(Toy):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rng = np.random.default_rng(5)

    def loss(self) -> Loss:
        value, reports = super().loss()
        return Loss(value * (1 + self.rng.random()), reports)


class Maximises(Toy):
    def loss(self) -> Loss:
        value, reports = super().loss()
        return Loss(-value + 2 * value.detach(), reports)  # the value of the loss, with the gradient of its negative


class TakesAll(Toy):
    """It overrides the check that its declaration asks for."""

    NEEDS_QUASIMETRIC = True

    def _check_model(self, model: QModel) -> None:
        pass


class TakesStateGoals(TakesAll):
    NEEDS_QUASIMETRIC = False
    GOAL_KINDS = ("state-action",)


class RefusesWhatItDeclares(Toy):
    def _check_model(self, model: QModel) -> None:
        Toy.NEEDS_QUASIMETRIC = True
        try:
            super()._check_model(model)
        finally:
            Toy.NEEDS_QUASIMETRIC = False


class Images(Toy):
    GOAL_KINDS = ("state-action", "image")


@pytest.mark.parametrize(
    ("cls", "settings", "point", "reason"),
    [
        (Toy, Undecided, "It declares what it learns", "LEARNS is 'values', neither 'distances' nor 'scores'"),
        (Images, ToySettings, "which models it can train", r"GOAL_KINDS is \('state-action', 'image'\)"),
        (Toy, Shortened, "Its settings survive being saved", r"they come back changed from .*'weights': \[1, 2\]"),
        (OtherReports, ToySettings, "A step reports finite scalars", "it declares .*'expected'.* and reports"),
        (ReportsTwice, ToySettings, "A step reports finite scalars", "it declares a scalar twice"),
        (NaNReport, ToySettings, "A step reports finite scalars", "no finite numbers: {'predicted': nan}"),
        (ReportsNumbers, ToySettings, "A step reports finite scalars", "AttributeError: 'float' object has no"),
        (ReportsUnasked, ToySettings, "A step reports finite scalars", "a step that is not logged reports something"),
        (Raises, ToySettings, "A step reports finite scalars", "IndexError: no such state"),
        (NeedsClosures, ToySettings, "A step reports finite scalars", "TypeError: .*closure"),
        (PlainNumbers, ToySettings, "its state can be saved", "CountingSGD keeps step as int, not as a tensor"),
        (BareParameter, ToySettings, "its state can be saved", "optimizer optimizes a parameter that is in no nn.Mod"),
        (ArrayState, ToySettings, "its state can be saved", "that of its sampler is not plain JSON values"),
        (GlobalRandomness, ToySettings, "The same seed gives the same steps", "a second learner differs in model"),
        (Unseeded, ToySettings, "The same seed gives the same steps", "a second learner differs in model"),
        (LogsMore, ToySettings, "The same seed gives the same steps, logged or not", "a second learner differs in"),
        (Counts, ToySettings, "saved and restored goes on bit by bit", "the restored learner differs in model"),
        (ForgetsRandomness, ToySettings, "saved and restored goes on bit by bit", "the restored learner differs in"),
        (Maximises, ToySettings, "The loss falls in a tiny world", r"its mean over 20 steps goes from \S+ to \S+ in"),
        (TakesAll, ToySettings, "refuses others with a LearnerError", "it takes dot, which it declares not to accept"),
        (TakesStateGoals, ToySettings, "refuses others", "it takes unconstrained-state, which it declares not to"),
        (RefusesWhatItDeclares, ToySettings, "It trains the models that it accepts", "it refuses dot, which it decl"),
    ],
)
def test_each_breach_is_named(cls: type[Learner], settings: type[LearnerSettings], point: str, reason: str) -> None:
    register_learner("broken", settings)(cls)
    message = rf"^learner broken breaks the contract \(.*{point}.*\): .*{reason}"
    with pytest.raises(ContractError, match=message):
        check_learner("broken")


def test_a_sound_plugin_passes() -> None:
    register_learner("toy", ToySettings)(Toy)
    check_learner("toy", weight=2)
    with pytest.raises(ConfigError, match="learner toy: unknown key 'wait'"):
        check_learner("toy", wait=2)


# The quick check of a built learner


def build(cls: type[Toy]) -> Toy:
    dataset = corridor(10)
    model = make_q_model("iqe-sum", QModelSpec(18, 4, 0.95), hidden_sizes=(8,), latent_size=8)
    settings = ToySettings(name="toy", batch_size=16)
    return cls(model, torch.tensor(dataset.observations), dataset, settings, 0)


def test_the_quick_check_accepts_a_sound_learner_and_keeps_the_random_state() -> None:
    learner = build(Toy)
    before = torch.get_rng_state()
    quick_check(learner, learner.settings)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (OtherReports, "it declares"),
        (Raises, "IndexError: no such state"),
        (PlainNumbers, "its state cannot be saved, so that it could not resume: CountingSGD keeps step"),
        (ArrayState, "its state cannot be saved, so that it could not resume: that of its sampler is not plain JSON"),
    ],
)
def test_the_quick_check_finds_what_would_stop_a_run(cls: type[Toy], reason: str) -> None:
    learner = build(cls)
    with pytest.raises(ContractError, match=rf"^learner toy breaks the contract \(.*\): {reason}"):
        quick_check(learner, learner.settings)
