import pytest
import torch

from qrl.catalog import count_parameters
from qrl.heads.transforms import Concave


def set_lines(concave: Concave, slopes: list[float], offsets: list[float]) -> None:
    with torch.no_grad():
        concave.raw_slopes.copy_(torch.tensor(slopes).div(2).logit())
        concave.raw_offsets.copy_(torch.tensor(offsets).expm1().log())


def test_concave_by_hand() -> None:
    concave = Concave(1)
    set_lines(concave, [1, 0.5, 1, 1, 1], [1, 9, 9, 9])
    for t, expected in [(0, 0), (1, 1), (2, 2), (4, 3), (16, 9)]:
        assert concave(torch.tensor([float(t)])).item() == pytest.approx(expected, abs=1e-5)


def test_concave_is_initially_the_identity() -> None:
    t = torch.linspace(0, 20, 50).unsqueeze(-1)
    torch.testing.assert_close(Concave(1)(t), t, rtol=5e-3, atol=1e-6)
    assert count_parameters(Concave(7)) == 63


def test_concave_is_subadditive_on_positive_numbers_only() -> None:
    concave = Concave(1)
    set_lines(concave, [1.9, 1, 1, 1, 1], [1, 9, 9, 9])

    def f(t: float) -> float:
        value: float = concave(torch.tensor([t])).item()
        return value

    a, b = torch.rand(100, 1) * 5, torch.rand(100, 1) * 5
    assert (concave(a + b) <= concave(a) + concave(b) + 1e-6).all()
    assert f(2) == pytest.approx(3, abs=1e-5)
    assert f(2) > f(-1) + f(3)  # why the original Deep Norm violates the triangle inequality
