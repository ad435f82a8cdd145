"""Regression of graph distances: the loss by hand, scores by hand, and runs that learn and resume exactly."""

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from qrl import QModelSpec, make_q_model
from qrl.agents.errors import RunError
from qrl.agents.learners.regression import PairSampler, RegressionLearner, regression_loss, score_pairs
from qrl.agents.learners.settings import RegressionSettings
from qrl.agents.runs.graph_training import GraphTraining, resume, start, train
from qrl.agents.runs.settings import GraphTrainSettings
from qrl.agents.runs.trained_run import TrainedRun
from qrl.agents.runs.training import AgentTraining
from qrl.envs.graphs.landmarks import Pairs
from qrl.q_models.base import QModel
from qrl.registry import list_q_models
from tests.agents.worlds import short_run

SPEC = QModelSpec(observation_dim=4, num_actions=1, discount=0.9)
SMALL: dict[str, Any] = {"hidden_sizes": [16, 16]}


def small_settings(run: Path | None = None, **changes: Any) -> GraphTrainSettings:
    values: dict[str, Any] = {
        "graph": {"kind": "random-block", "nodes": 30, "feature_size": 8},
        "model": changes.pop("model", {"name": "iqe-sum", "params": SMALL | {"latent_size": 16}}),
        "learner": {"batch_size": 64, "epochs": 0.01, "min_steps": 20, "lr": 1e-2},
    }
    return GraphTrainSettings.from_values(short_run(run, values, changes), "test")


class Given(nn.Module):
    """A model that says a distance for each pair of numbers: x - y, or infinity."""

    spec = SPEC
    goal_kind = "state-action"

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        return observations

    def distance(self, state: Tensor, action: Tensor, goal: Tensor, goal_action: Tensor) -> Tensor:
        return (goal - state)[:, 0]

    def discounted(self, *asked: Tensor) -> Tensor:
        return torch.exp(math.log(0.9) * self.distance(*asked))


def test_scores_by_hand() -> None:
    features = torch.tensor([[0.0], [2], [5], [1000]])
    pairs = Pairs(
        np.array([[0, 1], [1, 2], [0, 2], [0, 3], [2, 0]], np.int32),
        np.array([3, 3, 5, np.inf, np.inf], np.float32),
    )
    # Estimates 2, 3, 5 with a way, 1000 and -5 without.
    found = score_pairs(Given(), features, pairs)  # type: ignore[arg-type]
    squares = [(0.9**2 - 0.9**3) ** 2, 0, 0, 0.9**2000, 0.9**-10]
    assert found["mse"] == pytest.approx(np.mean(squares), rel=1e-5)
    assert found["l1_error"] == found["l1_error_clipped"] == pytest.approx(1 / 3)
    assert found["no_way_estimate"] == pytest.approx((1000 - 5) / 2)
    assert found["no_way_estimate_clipped"] == pytest.approx(math.log(1e-13) / math.log(0.9) / 2)
    assert found["spearman"] == pytest.approx(math.sqrt(3) / 2)  # ranks 1, 2, 3 against 1.5, 1.5, 3
    assert list(found) == list(GraphTrainSettings.EVALUATED)
    none = score_pairs(Given(), features, Pairs(pairs.nodes[3:], pairs.distances[3:]))  # type: ignore[arg-type]
    assert math.isnan(none["l1_error"])
    assert math.isnan(none["spearman"])


@pytest.mark.parametrize("name", list_q_models())
def test_every_model_of_the_registry_serves(name: str) -> None:
    torch.manual_seed(0)
    model = make_q_model(name, SPEC, **SMALL)
    features = torch.randn(6, 4)
    source, target = torch.tensor([0, 1, 2, 2]), torch.tensor([3, 1, 5, 4])
    y = torch.tensor([0.9, 1, 0, 0.5])
    triplets = torch.tensor([[0, 1], [2, 3], [4, 5]])
    loss, parts = regression_loss(model, features, (source, target, y), triplets, weight=0.3)
    loss.backward()
    assert loss.item() == pytest.approx(parts["fit"].item() + 0.3 * parts["triangle"].item())
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    scores = score_pairs(
        model, features, Pairs(np.array([[0, 1], [2, 3]], np.int32), np.array([1, np.inf], np.float32))
    )
    assert scores["mse"] >= 0


def naive_loss(model: QModel, features: Tensor, source: Tensor, target: Tensor, y: Tensor) -> Tensor:
    """Every row encoded, as often as it comes."""
    rows = model.encode(features[torch.cat([source, target])])
    nothing = torch.zeros_like(source)
    predicted = model.discounted(rows[: len(source)], nothing, rows[len(source) :], nothing)
    return (predicted - y).square().mean()


@pytest.mark.parametrize("batch_norm", [True, False])
def test_encoding_each_node_once_changes_nothing(batch_norm: bool) -> None:
    torch.manual_seed(1)
    model = make_q_model("iqe-maxmean", SPEC, latent_size=16, batch_norm=batch_norm, **SMALL).double().train()
    other = copy.deepcopy(model)
    features = torch.randn(5, 4, dtype=torch.float64)
    source, target = torch.randint(5, (2, 40))
    y = torch.rand(40, dtype=torch.float64)
    loss, _ = regression_loss(model, features, (source, target, y), None, weight=0)
    slow = naive_loss(other, features, source, target, y)
    loss.backward()
    slow.backward()
    torch.testing.assert_close(loss, slow)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)
    for buffer, plain in zip(model.buffers(), other.buffers(), strict=True):
        torch.testing.assert_close(buffer, plain)


def test_pairs_without_a_way_have_the_target_0() -> None:
    pairs = Pairs(np.array([[0, 1], [1, 0]], np.int32), np.array([2, np.inf], np.float32))
    sampler = PairSampler(pairs, 0.9, seed=0)
    source, target, y = sampler.sample(1000)
    assert torch.equal(target, 1 - source)
    torch.testing.assert_close(y, torch.where(source == 0, 0.81, 0.0))
    assert 400 < (source == 0).sum() < 600
    assert {*sampler.sample_nodes(100).tolist()} == {0, 1}


def test_learning_rate_decays_to_0() -> None:
    settings = RegressionSettings.from_values({"lr": 0.1, "batch_size": 2, "epochs": 1}, "test")
    pairs = Pairs(np.array([[0, 1]] * 20, np.int32), np.ones(20, np.float32))
    model = make_q_model("euclidean", SPEC, **SMALL)
    learner = RegressionLearner(model, torch.randn(2, 4), settings, settings.num_steps(20))
    sampler = PairSampler(pairs, 0.9, 0)
    rates = [learner.update(sampler, with_metrics=True)["lr"] for _ in range(learner.num_steps)]
    assert len(rates) == 10
    assert rates == pytest.approx([0.05 * (1 + math.cos(math.pi * step / 10)) for step in range(10)])


def finish(folder: Any, training: GraphTraining) -> list[dict[str, float]]:
    return list(train(folder, training))


@pytest.mark.parametrize(
    "changes", [{}, {"model": {"name": "unconstrained-disc", "params": SMALL}, "learner": {"triangle": 1}}]
)
def test_resume_is_exact(changes: dict[str, Any], tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    rows = finish(*start(small_settings(whole, **changes)))
    assert set(GraphTrainSettings.EVALUATED) <= set(rows[-1])
    steps = iter(range(100))
    folder, training = start(small_settings(parts, **changes))
    for _ in train(folder, training, stop=lambda: next(steps) >= 7):
        pass
    assert training.learner.step == 7
    finish(*resume(parts))
    one, other = (load_file(path / "checkpoint.safetensors") for path in (whole, parts))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)
    first, second = ((path / "metrics.csv").read_text().splitlines() for path in (whole, parts))
    assert len(first) == len(second) == 1 + len({3, 6, 9, 10, 12, 15, 18, 20})


def test_runs_of_agents_and_graphs_are_told_apart(tmp_path: Path, trained: Path) -> None:
    with pytest.raises(RunError, match="is no run of train-graph"):
        resume(trained)
    start(small_settings(tmp_path / "graph"))
    with pytest.raises(RunError, match="is no run of train-agent"):
        AgentTraining.resume(tmp_path / "graph")
    with pytest.raises(RunError, match="is no run of train-agent"):
        TrainedRun.open(tmp_path / "graph")


def test_evaluation_is_of_validation_pairs_with_running_statistics(tmp_path: Path) -> None:
    _, training = start(small_settings(tmp_path / "run"))
    data, model = training.dataset, training.learner.model
    for _ in range(5):
        training.learner.update(training.sampler, with_metrics=False)
    features = torch.tensor(data.features)
    features = (features - features.mean(0)) / features.std(0, correction=0)
    model.eval()
    with torch.no_grad():
        rows = model.encode(features)
        source, target = torch.tensor(data.validation_pairs).long().T
        nothing = torch.zeros_like(source)
        discounted = model.discounted(rows[source], nothing, rows[target], nothing).numpy()
    model.train()
    expected = np.square(discounted - 0.9**data.validation_distances).mean()
    assert training.evaluate()["mse"] == pytest.approx(expected, rel=1e-5)
    assert model.training


@pytest.mark.parametrize("kind", ["random-dense", "random-sparse", "random-block"])
def test_quasimetrics_fit_what_metrics_cannot(kind: str, tmp_path: Path) -> None:
    reached = {}
    for name in ("iqe-sum", "euclidean"):
        settings = small_settings(
            tmp_path / name,
            graph={"kind": kind, "nodes": 30, "feature_size": 32},
            model={"name": name, "params": {"hidden_sizes": [64, 64], "latent_size": 32, "batch_norm": False}},
            learner={"batch_size": 128, "min_steps": 150, "lr": 3e-3},
            evaluate_every=150,
            checkpoint_every=150,
        )
        reached[name] = finish(*start(settings))[-1]["mse"]
    assert reached["iqe-sum"] < 0.7 * reached["euclidean"]
