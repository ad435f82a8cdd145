"""Regression of graph distances: the loss by hand, and against encoding every row."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from qrl import QModelSpec, make_q_model
from qrl.agents.learners.regression import PairSampler, RegressionLearner, regression_loss
from qrl.agents.learners.settings import RegressionSettings
from qrl.envs.graphs.collector import GraphSettings, collect_graph
from qrl.envs.graphs.landmarks import Pairs
from qrl.q_models.base import QModel
from qrl.registry import list_q_models

SPEC = QModelSpec(observation_dim=4, num_actions=1, discount=0.9)


@pytest.mark.parametrize("name", list_q_models())
def test_every_registered_model_can_be_fitted(name: str) -> None:
    torch.manual_seed(0)
    model = make_q_model(name, SPEC, hidden_sizes=(16, 16))
    features = torch.randn(6, 4)
    source, target = torch.tensor([0, 1, 2, 2]), torch.tensor([3, 1, 5, 4])
    y = torch.tensor([0.9, 1, 0, 0.5])
    triplets = torch.tensor([[0, 1], [2, 3], [4, 5]])
    loss = regression_loss(model, features, (source, target, y), triplets, weight=0.3)
    loss.value.backward()
    terms = loss.reports
    assert loss.value.item() == pytest.approx(terms["loss_fit"].item() + 0.3 * terms["loss_triangle"].item())
    assert terms["loss_fit"].item() == pytest.approx((terms["predicted_discount"] - y).square().mean().item(), rel=1e-5)
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert any(gradient.any() for gradient in gradients)


def naive_loss(model: QModel, features: Tensor, source: Tensor, target: Tensor, y: Tensor) -> Tensor:
    """Every row is encoded as often as it occurs."""
    rows = model.encode(features[torch.cat([source, target])])
    only_action = torch.zeros_like(source)
    predicted = model.discounted(rows[: len(source)], only_action, rows[len(source) :], only_action)
    return (predicted - y).square().mean()


@pytest.mark.parametrize("batch_norm", [True, False])
def test_encoding_each_node_once_changes_nothing(batch_norm: bool) -> None:
    torch.manual_seed(1)
    params = {"hidden_sizes": (16, 16), "latent_size": 16, "batch_norm": batch_norm}
    model = make_q_model("iqe-maxmean", SPEC, **params).double().train()
    naive = copy.deepcopy(model)
    features = torch.randn(5, 4, dtype=torch.float64)
    source, target = torch.randint(5, (2, 40))
    y = torch.rand(40, dtype=torch.float64)
    loss = regression_loss(model, features, (source, target, y), None, weight=0).value
    expected = naive_loss(naive, features, source, target, y)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(loss, expected)
    for parameter, naive_parameter in zip(model.parameters(), naive.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, naive_parameter.grad)
    for buffer, naive_buffer in zip(model.buffers(), naive.buffers(), strict=True):
        torch.testing.assert_close(buffer, naive_buffer)


def test_unreachable_pairs_have_target_0() -> None:
    pairs = Pairs(np.array([[0, 1], [1, 0]], np.int32), np.array([2, np.inf], np.float32))
    sampler = PairSampler(pairs, 0.9, seed=0)
    source, target, y = sampler.sample(1000)
    assert torch.equal(target, 1 - source)
    torch.testing.assert_close(y, torch.where(source == 0, 0.81, 0.0))
    assert 400 < (source == 0).sum() < 600
    assert {*sampler.sample_nodes(100).tolist()} == {0, 1}


def test_a_learner_draws_its_own_pairs() -> None:
    graph = collect_graph(GraphSettings(kind="random-block", nodes=20, feature_size=4))
    torch.manual_seed(0)
    model = make_q_model("euclidean", SPEC, hidden_sizes=(8,), latent_size=8)
    settings = RegressionSettings(batch_size=16, triangle=1.0, triangle_triplets=4)
    learner = RegressionLearner(model, torch.tensor(graph.features), graph, settings, 0)
    scalars = learner.step()
    assert scalars["loss"] == pytest.approx(scalars["loss_fit"] + scalars["loss_triangle"])
    assert learner.num_steps == 80 * -(-len(graph.training_pairs) // 16)
