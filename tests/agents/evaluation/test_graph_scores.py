import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from qrl import QModelSpec, make_q_model
from qrl.agents.evaluation import graph_scores
from qrl.agents.evaluation.graph_metrics import GRAPH_METRICS
from qrl.agents.evaluation.graph_scores import pair_distances, score_pairs
from qrl.envs.graphs.landmarks import Pairs


class Differences(nn.Module):
    """A model whose distance is the difference of two numbers."""

    spec = QModelSpec(observation_dim=1, num_actions=1, discount=0.9)
    goal_kind = "state-action"

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        return observations

    def distance(self, state: Tensor, action: Tensor, goal: Tensor, goal_action: Tensor) -> Tensor:
        return (goal - state)[:, 0]

    def discounted(self, *query: Tensor) -> Tensor:
        return torch.exp(math.log(0.9) * self.distance(*query))


def test_scores_by_hand() -> None:
    features = torch.tensor([[0.0], [2], [5], [1000]])
    pairs = Pairs(
        np.array([[0, 1], [1, 2], [0, 2], [0, 3], [2, 0]], np.int32),
        np.array([3, 3, 5, np.inf, np.inf], np.float32),
    )
    # Estimates 2, 3, 5 of reachable pairs, 1000 and -5 of unreachable ones.
    scores = score_pairs(Differences(), features, pairs)  # type: ignore[arg-type]
    squares = [(0.9**2 - 0.9**3) ** 2, 0, 0, 0.9**2000, 0.9**-10]
    assert scores["mse"] == pytest.approx(np.mean(squares), rel=1e-5)
    assert scores["l1_error"] == scores["l1_error_clipped"] == pytest.approx(1 / 3)
    assert scores["no_way_estimate"] == pytest.approx((1000 - 5) / 2)
    assert scores["no_way_estimate_clipped"] == pytest.approx(math.log(1e-13) / math.log(0.9) / 2)
    assert scores["spearman"] == pytest.approx(math.sqrt(3) / 2)  # ranks 1, 2, 3 against 1.5, 1.5, 3
    assert list(scores) == [metric.key for metric in GRAPH_METRICS]
    unreachable = score_pairs(Differences(), features, Pairs(pairs.nodes[3:], pairs.distances[3:]))  # type: ignore[arg-type]
    assert math.isnan(unreachable["l1_error"])
    assert math.isnan(unreachable["spearman"])


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = make_q_model("iqe-maxmean", QModelSpec(4, 1, 0.9), hidden_sizes=(8,), latent_size=8).train()
    features, nodes = torch.randn(9, 4), torch.randint(9, (50, 2))
    whole = pair_distances(model, features, nodes)
    monkeypatch.setattr(graph_scores, "_NODE_CHUNK", 2)
    monkeypatch.setattr(graph_scores, "_PAIR_CHUNK", 7)
    chunked = pair_distances(model, features, nodes)
    for values, expected in zip(chunked, whole, strict=True):
        assert values.shape == (50,)
        torch.testing.assert_close(values, expected)
    assert model.training
