import pytest
import torch

from qrl.heads.reductions import REDUCTIONS, make_reduction
from qrl.heads.transforms import Concave


@pytest.mark.parametrize(("name", "expected"), [("sum", 4), ("mean", 2), ("max", 3), ("maxmean", 2.2689414)])
def test_reductions_by_hand(name: str, expected: float) -> None:
    assert make_reduction(name)(torch.tensor([1.0, 3.0])).item() == pytest.approx(expected, abs=1e-6)


def test_only_maxmean_learns() -> None:
    counts = {name: sum(p.numel() for p in make_reduction(name).parameters()) for name in REDUCTIONS}
    assert counts == {"sum": 0, "mean": 0, "max": 0, "maxmean": 1}


def test_maxmean_reaches_the_max() -> None:
    reduction = make_reduction("maxmean").double()
    with torch.no_grad():
        next(reduction.parameters()).fill_(40)
    assert reduction(torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64)).item() == 3


def set_lines(concave: Concave, slopes: list[float], offsets: list[float]) -> None:
    with torch.no_grad():
        concave.raw_slopes.copy_(torch.tensor(slopes).div(2).logit())
        concave.raw_offsets.copy_(torch.tensor(offsets).expm1().log())


def test_concave_by_hand() -> None:
    concave = Concave(1)
    set_lines(concave, [1, 0.5, 1, 1, 1], [1, 9, 9, 9])
    for t, expected in [(0, 0), (1, 1), (2, 2), (4, 3), (16, 9)]:
        assert concave(torch.tensor([float(t)])).item() == pytest.approx(expected, abs=1e-5)


def test_concave_starts_as_the_identity() -> None:
    t = torch.linspace(0, 20, 50).unsqueeze(-1)
    torch.testing.assert_close(Concave(1)(t), t, rtol=5e-3, atol=1e-6)
    assert sum(p.numel() for p in Concave(7).parameters()) == 63


def test_concave_is_subadditive_on_positive_numbers_only() -> None:
    concave = Concave(1)
    set_lines(concave, [1.9, 1, 1, 1, 1], [1, 9, 9, 9])

    def f(t: float) -> float:
        return concave(torch.tensor([t])).item()

    a, b = torch.rand(100, 1) * 5, torch.rand(100, 1) * 5
    assert (concave(a + b) <= concave(a) + concave(b) + 1e-6).all()
    assert f(2) == pytest.approx(3, abs=1e-5)
    assert f(2) > f(-1) + f(3)  # why the original Deep Norm breaks the triangle inequality
