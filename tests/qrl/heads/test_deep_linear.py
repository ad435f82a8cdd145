import pytest
import torch

from qrl.common.errors import ConfigError
from qrl.heads.deep_linear import DeepLinear, DiscountedMixture, DistanceMixture, make_mixture
from tests.heads import doubles


def test_deep_linear_collapses_to_its_product() -> None:
    net = DeepLinear(3, 2).double()
    with torch.no_grad():
        net.bias.add_(1)
    x = torch.randn(5, 3, dtype=torch.float64)
    output = x
    for factor in net.factors:
        output = output @ factor.mT
    torch.testing.assert_close(x @ net.matrix().mT, output + x.sum(-1, keepdim=True))


def test_discounted_mixture_by_hand() -> None:
    mixture = DiscountedMixture(1, discount=0.5).double()
    with torch.no_grad():
        mixture.net.bias.sub_(mixture.net.matrix())
    assert mixture(doubles(1)).item() == pytest.approx(1)


@pytest.mark.parametrize(("size", "low", "high"), [(16, 2.4023, 3.3073), (32, 3.1174, 4.0095), (64, 3.8214, 4.7071)])
def test_initial_discounted_mixture_is_in_its_range(size: int, low: float, high: float) -> None:
    mixture = DiscountedMixture(size, discount=0.9)
    logits = mixture.net.matrix()
    assert low - 1e-3 < logits.min() < logits.max() < high + 1e-3
    half = 0.9 ** mixture(torch.full((size,), 0.5)).item()
    assert 0.5 < half < 0.75


def test_initial_distance_mixture_is_near_one() -> None:
    torch.manual_seed(0)
    totals = torch.stack([DistanceMixture(16)(torch.ones(16)) for _ in range(40)])
    assert 0.7 < totals.mean() < 1.4
    assert (totals > 0).all()


def test_mixtures_are_the_product_of_discounts() -> None:
    mixture = DiscountedMixture(5, discount=0.9).double()
    q = torch.rand(7, 5, dtype=torch.float64)
    product = (mixture.net.matrix().squeeze(-1).sigmoid() ** q).prod(-1)
    torch.testing.assert_close(0.9 ** mixture(q), product)


def test_unknown_mode() -> None:
    with pytest.raises(ConfigError, match=r"unknown mode 'distances' \(did you mean 'distance'\?\)"):
        make_mixture("distances", 4, 0.9)
