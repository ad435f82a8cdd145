"""What all learners share, mostly with the MBOLD learner as the example."""

import copy
import json
import math
from typing import Any

import pytest
import torch

from qrl import QModelSpec, make_q_model
from qrl.agents.errors import LearnerError, TrainingError
from qrl.agents.learners.base import Learner, LearnerState, discounted, encode_distinct, triangle_regularizer
from qrl.agents.learners.iql import IqlLearner
from qrl.agents.learners.mbold import MboldLearner
from qrl.agents.learners.registry import find_learner
from qrl.agents.learners.settings import IqlSettings, LearnerSettings, MboldSettings
from tests.agents.learners import small_learners
from tests.agents.learners.small_learners import SHORT
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


def test_distinct_states_are_encoded_once() -> None:
    learner = make_learner()
    learner.model.eval()
    first, second = torch.tensor([5, 0, 5]), torch.tensor([0, 3])
    rows, (first_at, second_at) = encode_distinct(learner.model, learner.observations, first, second)
    assert len(rows) == 3
    every = learner.model.encode(learner.observations)
    torch.testing.assert_close(rows[first_at], every[first])
    torch.testing.assert_close(rows[second_at], every[second])


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


def saved(learner: Learner) -> LearnerState:
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


MODULES = {
    "mbold": {"target"},
    "qrl": {"constraint", "multiplier_optimizer"},
    "mad": set(),
    "cmd": {"potential"},
    "tmd": {"potential"},
    "iql": {"target", "value"},
    "gcbc": set(),
}


@pytest.mark.parametrize("name", MODULES)
def test_everything_that_a_learner_trains_is_restored(name: str) -> None:
    registration = find_learner(name)

    def make(seed: int) -> Learner:
        return small_learners.make_learner(registration.cls, registration.settings(**SHORT), seed=seed)

    learner, other = make(1), make(2)
    for _ in range(2):
        learner.step(log=False)
    state = saved(learner)
    assert {key.split(".")[0] for key in state.tensors} == {"model", "optimizer"} | MODULES[name]
    expected = [learner.step() for _ in range(2)]
    other.load_state_dict(state)
    assert [other.step() for _ in range(2)] == expected
    tensors = saved(other).tensors
    assert all(torch.equal(tensor, tensors[key]) for key, tensor in saved(learner).tensors.items())


def test_a_sampler_whose_state_is_not_json_is_refused() -> None:
    learner = make_learner()
    learner.sampler.state_dict = lambda: {"position": torch.tensor(3)}  # type: ignore[method-assign]
    with pytest.raises(
        LearnerError, match=r"learner mbold: its state cannot be saved, .* its sampler is not plain JSON"
    ):
        learner.state_dict()


def test_settings_without_goals_need_a_sampler() -> None:
    settings = LearnerSettings(name="mine")
    with pytest.raises(LearnerError, match=r"learner mine: its settings have no goals; .* or override make_sampler"):
        small_learners.make_learner(MboldLearner, settings)


def test_an_optimizer_whose_state_is_not_tensors_is_refused() -> None:
    learner = make_learner()
    learner.optimizer = torch.optim.LBFGS(learner.model.parameters())  # type: ignore[assignment]
    learner.optimizer.state[next(learner.model.parameters())]["calls"] = 1
    with pytest.raises(LearnerError, match=r"learner mbold: its state cannot be saved, .* LBFGS keeps calls as int"):
        learner.state_dict()


@pytest.mark.parametrize("name", ["qrl", "mad", "cmd", "tmd"])
def test_goals_that_are_states_are_refused(name: str) -> None:
    registration = find_learner(name)
    with pytest.raises(LearnerError, match=rf"learner {name}: .* Unconstrained"):
        small_learners.make_learner(registration.cls, registration.settings(**SHORT), "unconstrained-state")


def test_a_learner_that_needs_a_quasimetric_refuses_others() -> None:
    registration = find_learner("qrl")
    with pytest.raises(LearnerError, match="learner qrl: it needs a guaranteed quasimetric"):
        small_learners.make_learner(registration.cls, registration.settings(**SHORT), "dot")


def test_weights_of_another_model_go_into_all_of_its_copies() -> None:
    learner = small_learners.make_learner(IqlLearner, IqlSettings(**SHORT))
    other = small_learners.make_learner(IqlLearner, IqlSettings(**SHORT))
    other.step(log=False)
    learner.load_weights(other.model.state_dict())
    for module in (learner.model, learner.target, learner.value):
        assert all(torch.equal(value, other.model.state_dict()[key]) for key, value in module.state_dict().items())


def test_the_learning_rate_of_all_groups_follows_the_schedule() -> None:
    learner = small_learners.make_learner(IqlLearner, IqlSettings(**SHORT))
    assert len(learner.optimizer.param_groups) == 2
    for _ in range(3):
        lr = learner.step()["lr"]
        assert {group["lr"] for group in learner.optimizer.param_groups} == {lr}


def test_the_state_of_another_shape_is_refused() -> None:
    learner = make_learner()
    learner.step(log=False)
    step, tensors, sampler = saved(learner)
    key = next(key for key in tensors if key.startswith("optimizer.exp_avg."))
    with pytest.raises(ValueError, match=r"optimizer\.exp_avg\..* has another shape"):
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
