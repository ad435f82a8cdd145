import math

import pytest
import torch

from qrl.heads import L1, Euclidean, MetricMixture, Spherical
from qrl.heads.metrics import angle

U, V = torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0])


def test_metrics_by_hand() -> None:
    assert Euclidean(2)(U, V).item() == 5
    assert L1(2)(U, V).item() == 7
    assert Spherical(2)(U, V).item() == pytest.approx(math.pi / 2)
    weights = [1, 1 / math.sqrt(2), 1]
    parts = [5, 7, math.pi / 2]
    expected = [weight * part for weight, part in zip(weights, parts, strict=True)]
    assert MetricMixture(2).components(U, V).tolist() == pytest.approx(expected)
    assert MetricMixture(2)(U, V).item() == pytest.approx(sum(expected))


@pytest.mark.parametrize("theta", [0, 1e-6, 1e-4, 1, 2, math.pi - 1e-4, math.pi])
def test_angles_in_float32(theta: float) -> None:
    turned = torch.tensor([math.cos(theta), math.sin(theta)])
    assert angle(torch.tensor([5.0, 0.0]), 7 * turned).item() == pytest.approx(theta, rel=1e-5, abs=1e-7)
