import math

import pytest
import torch

from qrl.common.errors import ConfigError
from qrl.readouts import D_MIN, READOUTS, make_readout


@pytest.mark.parametrize(
    ("name", "z", "distance", "discounted"),
    [
        ("dist", 2, 2, 0.25),
        ("dist-exp", 2, 7.389056, 0.5**7.389056),
        ("dist-sq", 2, 4, 0.0625),
        ("disc", 0.25, 2, 0.25),
        ("disc-sigmoid", 0, 1, 0.5),
        ("dist", -1, -1, 2),
        ("disc", 1.5, 0, 1.5),
        ("disc", -3, math.log(D_MIN) / math.log(0.5), -3),
    ],
)
def test_by_hand(name: str, z: float, distance: float, discounted: float) -> None:
    readout = make_readout(name, 0.5)
    assert readout.distance(torch.tensor(float(z))).item() == pytest.approx(distance, rel=1e-5)
    assert readout.discounted(torch.tensor(float(z))).item() == pytest.approx(discounted, rel=1e-5)


@pytest.mark.parametrize("name", READOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_finite_at_the_extremes(name: str, dtype: torch.dtype) -> None:
    readout = make_readout(name, 0.95)
    z = torch.tensor([-1e4, -200, -1, 0, 1, 88, 200, 1e4], dtype=dtype, requires_grad=True)
    for function in (readout.distance, readout.discounted):
        value = function(z)
        (gradient,) = torch.autograd.grad(value.sum(), z)
        assert value.isfinite().all()
        assert gradient.isfinite().all()


@pytest.mark.parametrize("name", READOUTS)
def test_distance_and_discounted_agree(name: str) -> None:
    readout = make_readout(name, 0.95)
    z = torch.linspace(-8, 8, 400, dtype=torch.float64)
    discounted, distance = readout.discounted(z), readout.distance(z)
    inside = (discounted >= D_MIN) & (discounted <= 1)
    assert inside.sum() > 20
    torch.testing.assert_close(0.95 ** distance[inside], discounted[inside])


@pytest.mark.parametrize("name", READOUTS)
def test_gradients(name: str) -> None:
    readout = make_readout(name, 0.9)
    z = torch.tensor([-3.0, -0.5, 0.3, 0.9, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(readout.distance, z)
    assert torch.autograd.gradcheck(readout.discounted, z)


def test_unknown_readout() -> None:
    with pytest.raises(ConfigError, match=r"unknown readout 'sigmoid'.*known: disc, disc-sigmoid"):
        make_readout("sigmoid", 0.9)
