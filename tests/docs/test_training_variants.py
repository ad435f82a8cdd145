"""The learner of docs/training/variants, which is no part of the package."""

from typing import Any

import pytest
import torch

from qrl.agents.learners.base import Learner
from qrl.agents.runs.model import resolve
from qrl.agents.runs.settings import TrainSettings
from qrl.agents.runs.trainer import Trainer
from qrl.envs.collector import collect
from qrl.testing import check_learner

pytestmark = pytest.mark.usefixtures("training_variants")
STEPS = 6


def learner(**keys: Any) -> Learner:
    collector = {"layout": "corridor", "trajectories": 5}
    model = {"name": "iqe-maxmean", "width": 16, "latent_size": 16}
    learner = {"name": "mbold-variant", "batch_size": 32, "min_steps": STEPS, "epochs": 0.01, **keys}
    settings = TrainSettings.from_values({"collector": collector, "model": model, "learner": learner}, "test")
    settings = resolve(settings.model_copy(update={"compile": "off"}))
    return Trainer.build(settings, collect(settings.collector)).learner


@pytest.mark.parametrize("settings", [{"warm_up": 10}, {"averaging": 0.9}])
def test_contract(settings: dict[str, float]) -> None:
    check_learner("mbold-variant", **settings)


def test_the_rate_rises_to_that_of_the_schedule() -> None:
    plain, rising = (learner(warm_up=steps).settings for steps in (0, 4))
    ratios = [rising.learning_rate(step, 100) / plain.learning_rate(step, 100) for step in range(6)]
    assert ratios == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])


def test_averaged_weights_replace_the_last_ones_at_the_end_only() -> None:
    averaged, plain = learner(averaging=0.5), learner()
    expected = {name: value.clone() for name, value in plain.model.named_parameters()}
    for step in range(STEPS):
        for name, value in averaged.model.named_parameters():
            torch.testing.assert_close(value, plain.model.get_parameter(name), msg=f"{name} before step {step}")
        averaged.step()
        plain.step()
        for name, value in plain.model.named_parameters():
            expected[name] = 0.5 * expected[name] + 0.5 * value.detach()
    for name, value in averaged.model.named_parameters():
        torch.testing.assert_close(value.detach(), expected[name])
    statistics = dict(averaged.model.named_buffers())
    assert any(not torch.equal(value, statistics[name]) for name, value in plain.model.named_buffers())
