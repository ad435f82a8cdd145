"""The fast training step changes nothing: it is compared with the plainest one, in float64."""

import copy
from typing import Any

import pytest
import torch

from benchmarks.naive import NaiveLearner, textbook_union
from qrl import QModelSpec, make_q_model
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.mbold import MboldLearner
from qrl.agents.learners.settings import GoalSettings, MboldSettings
from qrl.heads.interval_union import interval_union
from tests.agents.worlds import corridor
from tests.compiler import needs_compiler

MODELS = [
    ("iqe-maxmean", {"latent_size": 16}, False),
    pytest.param("iqe-maxmean", {"latent_size": 16}, True, marks=needs_compiler),
    ("iqe-sum", {"latent_size": 16, "batch_norm": False}, False),
    ("pqe-gg", {"latent_size": 8}, False),
    ("pqe-lh", {"latent_size": 8}, False),
    ("deep-norm-fixed", {"latent_size": 8, "num_components": 8}, False),
    ("wide-norm", {"latent_size": 8}, False),
    ("mrn-fixed", {"latent_size": 8}, False),
    ("euclidean", {"latent_size": 8}, False),
    ("dot-disc-sigmoid", {"latent_size": 8}, False),
    ("unconstrained-disc-sigmoid", {}, False),
]


class Recorded(GoalSampler):
    """Gives the same batches again."""

    def sample(self, size: int) -> Any:
        self.last = super().sample(size)
        return self.last


@pytest.mark.parametrize(("name", "params", "compiled"), MODELS)
def test_one_step_equals_the_naive_one(
    name: str, params: dict[str, Any], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qrl.encoders._MIN_COMPILED", 0)
    settings = MboldSettings(batch_size=64, min_steps=10, goals=GoalSettings(current=0.1, future=0.4, random=0.5))
    dataset = corridor(20, "traps")
    torch.manual_seed(0)
    model = make_q_model(name, QModelSpec(18, 4, 0.95), hidden_sizes=(16, 16), **params).double()
    observations = torch.tensor(dataset.observations, dtype=torch.float64)
    naive = NaiveLearner(copy.deepcopy(model), observations, settings, 10)
    if compiled:
        model.accelerate_()
    fast = MboldLearner(model, observations, settings, 10)
    sampler = Recorded(dataset, settings.goals, seed=3)
    for step in range(2):  # the second one has a target that has moved
        metrics = fast.update(sampler, with_metrics=True)
        loss = naive.update(sampler.last)
        assert metrics["loss"] == pytest.approx(loss.item(), rel=1e-9)
        for (key, own), other in zip(fast.model.named_parameters(), naive.model.parameters(), strict=True):
            assert own.grad is not None
            assert other.grad is not None
            torch.testing.assert_close(
                own.grad, other.grad, rtol=1e-6, atol=1e-10, msg=f"gradient of {key}, step {step}"
            )
            # Adam divides by the gradient's size, so what is 0 but for rounding may move either way.
            moved = other.grad.abs() > 1e-9
            torch.testing.assert_close(own[moved], other[moved], rtol=1e-6, atol=1e-9, msg=f"{key}, step {step}")
        for fast_one, naive_one in ((fast.model, naive.model), (fast.target, naive.target)):
            for (key, kept), expected in zip(fast_one.named_buffers(), naive_one.buffers(), strict=True):
                torch.testing.assert_close(kept, expected, rtol=1e-9, atol=1e-12, msg=f"buffer {key}, step {step}")
        with torch.no_grad():  # rounding that Adam has made large must not add up over the steps
            for part, plain in ((fast.model, naive.model), (fast.target, naive.target)):
                for mine, theirs in zip(part.parameters(), plain.parameters(), strict=True):
                    mine.copy_(theirs)


def test_the_textbook_union_by_hand() -> None:
    u = torch.tensor([[0.0, 1.0, 5.0], [0.0, 0.0, 0.0]])
    v = torch.tensor([[2.0, 3.0, 4.0], [1.0, -2.0, 0.5]])
    assert textbook_union(u, v).tolist() == [3, 1]
    torch.testing.assert_close(textbook_union(u, v), interval_union(u, v))
