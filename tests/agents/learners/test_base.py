"""What all learners share, with the MBOLD learner as the example."""

import copy
import json
import math
from typing import Any

import pytest
import torch

from qrl import QModelSpec, make_q_model
from qrl.agents.errors import TrainingError
from qrl.agents.learners.base import LearnerState, discounted, triangle_regularizer
from qrl.agents.learners.mbold import MboldLearner
from qrl.agents.learners.settings import MboldSettings
from tests.agents.worlds import corridor


def make_learner(seed: int = 0, **changes: Any) -> MboldLearner:
    dataset = corridor(20)
    torch.manual_seed(seed)
    model = make_q_model("iqe-maxmean", QModelSpec(18, 4, 0.95), hidden_sizes=(16, 16), latent_size=16)
    values = {"batch_size": 32, "epochs": 0.01, "min_steps": 10, **changes}
    settings = MboldSettings.from_values(values, "test")
    return MboldLearner(model, torch.tensor(dataset.observations), dataset, settings, seed)


def test_triangle_regularizer_by_hand() -> None:
    d = torch.tensor
    assert triangle_regularizer(d([0.9]), d([0.9]), d([0.5])).item() == pytest.approx(0.0961)
    assert triangle_regularizer(d([0.9]), d([0.9]), d([0.9])).item() == 0
    assert triangle_regularizer(d([0.9, 0.9]), d([0.9, 0.9]), d([0.5, 0.9])).item() == pytest.approx(0.0961 / 2)


def test_discounted_equals_encoding_every_row() -> None:
    learner = make_learner()
    states, goals, actions = torch.tensor([0, 3, 3]), torch.tensor([3, 0, 5]), torch.tensor([1, 2, 0])
    learner.model.eval()
    fast = discounted(learner.model, learner.observations, states, actions, goals, actions)
    rows = learner.model.encode(learner.observations)
    torch.testing.assert_close(fast, learner.model.discounted(rows[states], actions, rows[goals], actions))


def test_the_scalars_of_a_step_are_right() -> None:
    learner = make_learner(triangle=1.0, triangle_triplets=5, conservative=0.1)
    scalars = learner.step()
    assert list(scalars) == learner.scalars
    assert scalars["loss"] == pytest.approx(
        scalars["loss_td"] + scalars["loss_triangle"] + 0.1 * scalars["loss_conservative"]
    )
    assert 0 < scalars["target_discount"] <= 1
    assert scalars["predicted_distance"] > 0
    gradients = [parameter.grad for parameter in learner.model.parameters() if parameter.grad is not None]
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    assert scalars["gradient_norm"] == pytest.approx(norm, rel=1e-5)
    assert scalars["lr"] == learner.settings.lr
    assert learner.step(log=False) == {}
    assert learner.steps_done == 2


def test_the_learning_rate_follows_the_cosine() -> None:
    learner = make_learner(lr=0.1)
    rates = [learner.step()["lr"] for _ in range(learner.num_steps)]
    assert rates == pytest.approx([0.05 * (1 + math.cos(math.pi * step / 10)) for step in range(10)])
    assert {group["lr"] for group in learner.optimizer.param_groups} == {rates[-1]}


def test_a_nan_loss_stops_before_the_weights_are_touched() -> None:
    learner = make_learner()
    learner.observations = learner.observations * float("nan")
    before = copy.deepcopy(learner.model.state_dict())
    with pytest.raises(TrainingError, match=r"the loss is nan at step 1; try a lower learner\.lr"):
        learner.step(log=False)
    assert learner.steps_done == 0
    for name, parameter in learner.model.named_parameters():
        assert torch.equal(parameter, before[name])


def saved(learner: MboldLearner) -> LearnerState:
    """The state as a checkpoint holds it: copies, and JSON."""
    step, tensors, sampler = learner.state_dict()
    return LearnerState(step, {key: value.clone() for key, value in tensors.items()}, json.loads(json.dumps(sampler)))


def test_a_restored_learner_continues_bit_exactly() -> None:
    learner, other = make_learner(triangle=1.0), make_learner(seed=1, triangle=1.0)
    for _ in range(3):
        learner.step(log=False)
    state = saved(learner)
    assert {key.split(".")[0] for key in state.tensors} == {"model", "target", "optimizer"}
    expected = [learner.step() for _ in range(3)]
    other.load_state_dict(state)
    assert other.steps_done == 3
    assert [other.step() for _ in range(3)] == expected
    first, second = saved(learner), saved(other)
    assert first.sampler == second.sampler
    assert first.tensors.keys() == second.tensors.keys()
    assert all(torch.equal(first.tensors[key], second.tensors[key]) for key in first.tensors)


def test_the_state_of_another_shape_is_refused() -> None:
    learner = make_learner()
    learner.step(log=False)
    step, tensors, sampler = saved(learner)
    key = next(key for key in tensors if key.startswith("optimizer.exp_avg."))
    with pytest.raises(ValueError, match=r"the optimizer's state of .* has another shape"):
        make_learner().load_state_dict(LearnerState(step, {**tensors, key: torch.zeros(3)}, sampler))


def test_weights_of_another_model_go_into_the_model_and_the_target() -> None:
    learner, other = make_learner(), make_learner(seed=1)
    other.step(log=False)
    learner.load_weights(other.model.state_dict())
    for module in (learner.model, learner.target):
        for key, value in module.state_dict().items():
            assert torch.equal(value, other.model.state_dict()[key])
    assert learner.steps_done == 0
    assert not learner.optimizer.state
