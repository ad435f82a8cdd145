import math

import pytest
import torch
from torch import nn

from qrl.heads import L1, MRN, Euclidean, MetricMixture, Spherical
from qrl.heads.metrics import angle

U, V = torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0])


@pytest.mark.parametrize(
    ("normalize", "fixed", "expected"),
    [(True, False, 15.5), (True, True, 6.5355339), (False, False, 28), (False, True, 8)],
)
def test_mrn_by_hand(normalize: bool, fixed: bool, expected: float) -> None:
    head = MRN(2, 2, fixed=fixed, normalize=normalize)
    head.symmetric = head.asymmetric = nn.Identity()
    assert head(U, V).item() == pytest.approx(expected)


def test_original_mrn_breaks_the_triangle_inequality_by_hand() -> None:
    head = MRN(1, 1)
    head.symmetric = nn.Identity()
    for parameter in head.asymmetric.parameters():
        nn.init.zeros_(parameter)
    zero, one, two = torch.tensor([[0.0], [1.0], [2.0]])
    assert (head(zero, two).item(), head(zero, one).item() + head(one, two).item()) == (4, 2)


@pytest.mark.parametrize(
    ("input_size", "hidden_size", "expected"),
    [(48, 58, 12528), (256, 128, 98816), (256, 512, 788480), (512, 128, 164352), (512, 512, 1050624)],
)
def test_mrn_parameters(input_size: int, hidden_size: int, expected: int) -> None:
    assert sum(parameter.numel() for parameter in MRN(input_size, hidden_size).parameters()) == expected


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
