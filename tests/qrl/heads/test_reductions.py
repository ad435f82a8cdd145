import pytest
import torch

from qrl.catalog import count_parameters
from qrl.common.errors import ConfigError
from qrl.heads.reductions import REDUCTIONS, make_reduction


@pytest.mark.parametrize(("name", "expected"), [("sum", 4), ("mean", 2), ("max", 3), ("maxmean", 2.2689414)])
def test_reductions_by_hand(name: str, expected: float) -> None:
    assert make_reduction(name)(torch.tensor([1.0, 3.0])).item() == pytest.approx(expected, abs=1e-6)


def test_only_maxmean_learns() -> None:
    counts = {name: count_parameters(make_reduction(name)) for name in REDUCTIONS}
    assert counts == {"sum": 0, "mean": 0, "max": 0, "maxmean": 1}


def test_maxmean_reaches_the_max() -> None:
    reduction = make_reduction("maxmean").double()
    with torch.no_grad():
        next(reduction.parameters()).fill_(40)
    assert reduction(torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64)).item() == 3


def test_unknown_reduction() -> None:
    with pytest.raises(ConfigError, match=r"unknown reduction 'median' .*known: max, maxmean, mean, sum"):
        make_reduction("median")
