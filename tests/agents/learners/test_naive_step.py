"""The fast training step computes what the plainest one does, in float64."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from qrl import QModelSpec, make_q_model
from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.mbold import MboldLearner, PairTriplets
from qrl.agents.learners.settings import MboldSettings
from qrl.common.config_files import merge
from qrl.heads.interval_union import interval_union
from tests.agents.learners.naive import NaiveLearner, textbook_union
from tests.agents.worlds import PLAIN, corridor
from tests.compiler import needs_compiler

REGULARIZED = {"conservative": 0.5, "triangle": 1.0, "triangle_triplets": 20}
CASES: list[Any] = [
    ("iqe-maxmean", {"latent_size": 16}, {}, False),
    pytest.param("iqe-maxmean", {"latent_size": 16}, {}, True, marks=needs_compiler),
    ("iqe-sum", {"latent_size": 16, "batch_norm": False}, {}, False),
    ("pqe-gg", {"latent_size": 8}, {}, False),
    ("pqe-lh", {"latent_size": 8}, {}, False),
    ("deep-norm-fixed", {"latent_size": 8, "num_components": 8}, {}, False),
    ("wide-norm", {"latent_size": 8}, {}, False),
    ("mrn-fixed", {"latent_size": 8}, {}, False),
    ("euclidean", {"latent_size": 8}, {}, False),
    ("dot-disc-sigmoid", {"latent_size": 8}, {}, False),
    ("dot-disc", {"latent_size": 8}, REGULARIZED, False),
    ("unconstrained-disc-sigmoid", {}, {}, False),
    ("unconstrained-state-disc-sigmoid", {}, {}, False),
    ("unconstrained-state-disc-sigmoid", {}, REGULARIZED, False),
]


class Recorded(GoalSampler):
    """Remembers what it drew last."""

    batch: Batch
    pairs: tuple[Tensor, Tensor]

    def sample(self, size: int) -> Batch:
        self.batch = super().sample(size)
        return self.batch

    def sample_pairs(self, size: int) -> tuple[Tensor, Tensor]:
        self.pairs = super().sample_pairs(size)
        return self.pairs


@pytest.mark.parametrize(("name", "params", "regularizers", "compiled"), CASES)
def test_a_step_equals_the_naive_step(
    name: str, params: dict[str, Any], regularizers: dict[str, Any], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qrl.encoders._MIN_COMPILED", 0)
    goals = {"current": 0.1, "future": 0.4, "random": 0.5}
    values = {"batch_size": 64, "epochs": 0.01, "min_steps": 10, "goals": goals, **regularizers}
    settings = MboldSettings.from_values(merge(values, PLAIN), "test")
    dataset = corridor(20, "traps")
    torch.manual_seed(0)
    model = make_q_model(name, QModelSpec(18, 4, 0.95), hidden_sizes=(16, 16), **params).double()
    observations = torch.tensor(dataset.observations, dtype=torch.float64)
    naive = NaiveLearner(copy.deepcopy(model), observations, settings, 10)
    if compiled:
        model.accelerate_()
    fast = MboldLearner(model, observations, dataset, settings, seed=3)
    fast.sampler = sampler = Recorded(dataset, settings.goals, seed=3)
    assert fast.num_steps == 10
    for step in range(2):  # in the second step the target has moved
        scalars = fast.step()
        triplets = None
        if settings.triangle:
            triplets = PairTriplets(*(values.view(3, -1) for values in sampler.pairs))
        loss = naive.step(sampler.batch, triplets)
        assert scalars["loss"] == pytest.approx(loss.item(), rel=1e-9)
        for (key, parameter), expected, averaged, expected_average in zip(
            fast.model.named_parameters(),
            naive.model.parameters(),
            fast.target.parameters(),
            naive.target.parameters(),
            strict=True,
        ):
            assert parameter.grad is not None
            assert expected.grad is not None
            torch.testing.assert_close(
                parameter.grad, expected.grad, rtol=1e-6, atol=1e-10, msg=f"gradient of {key}, step {step}"
            )
            # Adam divides by the gradient's size, so a gradient that is 0 up to rounding may move either way.
            moved = expected.grad.abs() > 1e-9
            close: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-9, "msg": f"{key}, step {step}"}
            torch.testing.assert_close(parameter[moved], expected[moved], **close)
            torch.testing.assert_close(averaged[moved], expected_average[moved], **close)
        for fast_model, naive_model in ((fast.model, naive.model), (fast.target, naive.target)):
            for (key, buffer), expected_buffer in zip(fast_model.named_buffers(), naive_model.buffers(), strict=True):
                torch.testing.assert_close(
                    buffer, expected_buffer, rtol=1e-9, atol=1e-12, msg=f"buffer {key}, step {step}"
                )
        with torch.no_grad():  # rounding that Adam has amplified must not add up over the steps
            for fast_model, naive_model in ((fast.model, naive.model), (fast.target, naive.target)):
                for parameter, expected in zip(fast_model.parameters(), naive_model.parameters(), strict=True):
                    parameter.copy_(expected)


def test_the_textbook_union_by_hand() -> None:
    u = torch.tensor([[0.0, 1.0, 5.0], [0.0, 0.0, 0.0]])
    v = torch.tensor([[2.0, 3.0, 4.0], [1.0, -2.0, 0.5]])
    assert textbook_union(u, v).tolist() == [3, 1]
    torch.testing.assert_close(textbook_union(u, v), interval_union(u, v))
