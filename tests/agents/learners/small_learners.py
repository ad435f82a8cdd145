"""Small learners for tests, and the comparison of a step with its naive objective."""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn

from qrl import QModelSpec, make_q_model
from qrl.agents.learners.base import Learner
from qrl.agents.learners.settings import LearnerSettings
from qrl.envs.dataset import Dataset
from qrl.heads import IQE
from qrl.q_models import QModel
from tests.agents.learners.naive import textbook_union
from tests.agents.learners.tables import ids
from tests.agents.worlds import corridor

L = TypeVar("L", bound=Learner)

SHORT: dict[str, Any] = {"batch_size": 12, "epochs": 0.01, "min_steps": 10}


@cache
def traps() -> Dataset:
    """Trajectories in a world where some goals are unreachable from some states."""
    return corridor(20, "traps")


def make_learner(
    cls: type[L], settings: LearnerSettings, model: str = "iqe-sum", dataset: Dataset | None = None, seed: int = 3
) -> L:
    """A learner of a small network, in float64."""
    dataset = dataset or traps()
    torch.manual_seed(0)
    # The batch norm of an unconstrained model is one over pairs: rows could not be compared one by one.
    sizes: dict[str, Any] = {"batch_norm": False} if model.startswith("unconstrained") else {"latent_size": 8}
    spec = QModelSpec(dataset.observations.shape[1], dataset.header.spaces.num_actions, settings.discount)
    q_model = make_q_model(model, spec, hidden_sizes=(16,), **sizes).double()
    return cls(q_model, torch.tensor(dataset.observations, dtype=torch.float64), dataset, settings, seed)


def train_table(cls: type[L], settings: LearnerSettings, model: QModel, dataset: Dataset) -> L:
    """A learner of a model whose observations are state ids, after all of its steps."""
    observations = ids(len(dataset.observations)).double()
    learner = cls(model.double(), observations, dataset, settings, seed=0)
    for _ in range(learner.num_steps):
        learner.step(log=False)
    return learner


@torch.no_grad()
def all_distances(model: QModel, states: int) -> Tensor:
    """(states, actions, goals, goal actions): the distances of a model whose observations are state ids."""
    rows = model.eval().encode(ids(states).double())
    return model.distance(rows[:, None], None, rows[None], None).transpose(1, 2)


def check_step(learner: L, naive_loss: Callable[[L], Tensor], *parts: str) -> L:
    """Compare the loss of a step, its gradients in the modules `parts` and all running statistics with the naive ones.

    Returns the learner as it was before its step, with the naive gradients.
    """
    naive = copy.deepcopy(learner)  # it will draw the same batch
    for module in naive.model.modules():
        if isinstance(module, IQE):
            module.union = textbook_union
    loss = naive_loss(naive)
    loss.backward()
    scalars = learner.step()
    assert scalars["loss"] == pytest.approx(loss.item(), rel=1e-6)
    for part in parts:
        compare_module(part, getattr(learner, part), getattr(naive, part))
    return naive


def compare_module(part: str, module: nn.Module, naive: nn.Module) -> None:
    gradients = 0.0
    for (name, parameter), expected in zip(module.named_parameters(), naive.parameters(), strict=True):
        message = f"gradient of {part}.{name}"
        assert parameter.grad is not None, message
        torch.testing.assert_close(
            parameter.grad,
            torch.zeros_like(expected) if expected.grad is None else expected.grad,
            rtol=1e-5,
            atol=1e-9,
            msg=message,
        )
        gradients += parameter.grad.abs().sum().item()
    assert gradients > 0
    for (name, buffer), expected_buffer in zip(module.named_buffers(), naive.buffers(), strict=True):
        torch.testing.assert_close(buffer, expected_buffer, msg=f"{part}.{name}")
