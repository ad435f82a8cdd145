import math

import pytest
import torch
from torch import nn

from qrl.catalog import count_parameters
from qrl.common.errors import ConfigError
from qrl.errors import ShapeError
from qrl.heads import DeepNorm, WideNorm
from qrl.heads.norms import MaxReLU, NonNegativeLinear
from qrl.heads.reductions import make_reduction


@pytest.mark.parametrize(
    ("input_size", "width", "original", "fixed"),
    [(48, 48, 12097, 12049), (256, 64, 58113, 58049), (256, 128, 132609, 132481), (512, 128, 230913, 230785)],
)
def test_deep_norm_parameters(input_size: int, width: int, original: int, fixed: int) -> None:
    assert count_parameters(DeepNorm(input_size, width)) == original
    assert count_parameters(DeepNorm(input_size, width, fixed=True)) == fixed


@pytest.mark.parametrize(
    ("input_size", "components", "size", "expected"),
    [(48, 12, 11, 12781), (48, 22, 6, 12871), (48, 6, 22, 12727), (256, 32, 32, 524577), (256, 32, 48, 786721)],
)
def test_wide_norm_parameters(input_size: int, components: int, size: int, expected: int) -> None:
    assert count_parameters(WideNorm(input_size, components, size)) == expected


def identity_deep_norm(size: int, activation: type[nn.Module], reduction: str) -> DeepNorm:
    """Layers that copy their input: U0 = W1 = W2 = I, U1 = U2 = 0, no transform."""
    head = DeepNorm(size, size)
    with torch.no_grad():
        for index, weight in enumerate(head.from_input.parameters()):
            weight.copy_(torch.eye(size) * (index == 0))
        for weight in head.from_layer.parameters():
            weight.copy_(torch.eye(size))
    head.activations = nn.ModuleList(activation() for _ in range(3))
    head.transform, head.reduction = nn.Identity(), make_reduction(reduction)
    return head


@pytest.mark.parametrize(("reduction", "expected"), [("sum", 3), ("max", 3), ("mean", 1.5)])
def test_deep_norm_by_hand(reduction: str, expected: float) -> None:
    head = identity_deep_norm(2, nn.ReLU, reduction)
    u, v = torch.tensor([4.0, 1.0]), torch.tensor([1.0, 3.0])
    assert head.components(u, v).tolist() == [3, 0]
    assert head(u, v).item() == expected


def test_deep_norm_with_relu_everywhere_is_a_quasimetric() -> None:
    head = DeepNorm(4, 3, activation="relu")  # no pairs of features, so that the width may be odd
    assert head.guaranteed_quasimetric
    assert [type(activation) for activation in head.activations] == [nn.ReLU] * 3
    with pytest.raises(ConfigError, match=r"unknown activation 'tanh'"):
        DeepNorm(4, 4, activation="tanh")


def test_original_deep_norm_can_be_negative_by_hand() -> None:
    head = DeepNorm(2, 2, num_layers=1)
    with torch.no_grad():
        next(head.from_input.parameters()).copy_(torch.eye(2))
    assert head.components(torch.tensor([-1.0, -2.0]), torch.zeros(2)).tolist() == [-1, 0]


def test_max_relu_by_hand() -> None:
    out = MaxReLU(2)(torch.tensor([1.0, -2.0]))
    assert out.tolist() == pytest.approx([1, math.log(2) / 2])
    out = MaxReLU(4)(torch.tensor([1.0, 2.0, -3.0, -4.0]))
    assert out.tolist() == pytest.approx([2, -3, 3 * math.log(2) / 2, 0])
    with pytest.raises(ShapeError, match=r"\(3\) must be even"):
        DeepNorm(8, 3)


def test_wide_norm_by_hand() -> None:
    head = WideNorm(1, 1, 1)
    with torch.no_grad():
        head.weights.weight.copy_(torch.tensor([[1.0, 2.0]]))
    zero = torch.zeros(1)
    assert head.components(torch.tensor([3.0]), zero).tolist() == [3]
    assert head.components(torch.tensor([-3.0]), zero).tolist() == [6]


def test_weights_are_and_stay_non_negative() -> None:
    layer = NonNegativeLinear(6, 50)
    assert (layer.weight >= 0).all()
    assert 0.3 < (layer.weight == 0).float().mean() < 0.7
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    layer(torch.ones(1, 6)).sum().backward()
    optimizer.step()
    assert (layer.weight < 0).any()
    layer.project_()
    assert (layer.weight >= 0).all()
    # A projected weight keeps its gradient and can grow again.
    layer.zero_grad()
    (-layer(torch.ones(1, 6))).sum().backward()
    optimizer.step()
    assert (layer.weight > 0).all()
