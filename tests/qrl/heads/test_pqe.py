import functools
import math

import mpmath
import pytest
import torch
from torch import Tensor

from qrl.common.errors import ConfigError
from qrl.errors import ShapeError
from qrl.heads import PQEGG, PQELH
from qrl.heads.deep_linear import DeepLinear, DiscountedMixture, DistanceMixture
from qrl.heads.poisson_race import poisson_race, probability_equal, probability_one_more

RATES = [0, 1e-8, 1e-4, 0.03, 0.3, 0.49, 1, 2, 10, 30, 90, 110, 400]


def doubles(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


# The race


@functools.cache
def poisson_weights(rate: float, terms: int) -> tuple[list[mpmath.mpf], list[mpmath.mpf], list[mpmath.mpf]]:
    """P(N = n), P(N <= n) and P(N > n) to 40 digits, each summed from its small end."""
    with mpmath.workdps(40):
        weights = [mpmath.exp(-mpmath.mpf(rate))]
        for number in range(1, terms):
            weights.append(weights[-1] * rate / number)
        below, above = [weights[0]], [mpmath.mpf(0)]
        for number in range(1, terms):
            below.append(below[-1] + weights[number])
            above.append(above[-1] + weights[terms - number])
        return weights, below, above[::-1]


def reference_race(mu1: float, mu2: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    terms = int(max(mu1, mu2) + 40 * math.sqrt(max(mu1, mu2) + 1) + 60)
    with mpmath.workdps(40):
        _, below, above = poisson_weights(mu1, terms)
        weights, _, _ = poisson_weights(mu2, terms)
        greater = sum((w * a for w, a in zip(weights, above, strict=True)), mpmath.mpf(0))
        less_equal = sum((w * b for w, b in zip(weights, below, strict=True)), mpmath.mpf(0))
        return greater, less_equal


@pytest.mark.parametrize(
    ("method", "dtype", "absolute", "relative"),
    [
        ("scipy", torch.float64, 1e-14, 1e-12),
        ("quadrature", torch.float64, 1e-14, 1e-12),
        ("scipy", torch.float32, 1e-7, 1e-6),
        ("quadrature", torch.float32, 5e-7, 1e-4),
    ],
)
@pytest.mark.parametrize("rates", [RATES, [rate for rate in RATES if rate <= 0.5]])  # small ones have a series
def test_race_against_forty_digits(
    rates: list[float], method: str, dtype: torch.dtype, absolute: float, relative: float
) -> None:
    grid = torch.tensor([(x, y) for x in rates for y in rates], dtype=torch.float64)
    measured = poisson_race(grid[:, 0].to(dtype), grid[:, 1].to(dtype), method)
    for index, pair in enumerate(grid.tolist()):
        for value, expected in zip(measured, reference_race(*pair), strict=True):
            error = abs(mpmath.mpf(value[index].item()) - expected)
            assert error <= absolute, pair
            assert expected < 1e-30 or error <= relative * expected, pair


@pytest.mark.parametrize(
    ("mu1", "mu2", "expected"),
    [
        (0, 5, 1),
        (1, 0, math.exp(-1)),
        (1, 1, 0.654254161),
        (2, 1, 0.394296859),
        (1, 2, 0.817415225),
        (0.5, 0.25, 0.675649296),
    ],
)
def test_race_by_hand(mu1: float, mu2: float, expected: float) -> None:
    for method in ("scipy", "quadrature"):
        assert poisson_race(doubles(mu1), doubles(mu2), method)[1].item() == pytest.approx(expected, abs=1e-9)


def test_equal_rates_are_symmetric() -> None:
    mu = doubles(0.1, 1, 20)
    expected = (1 + torch.special.i0e(2 * mu)) / 2
    torch.testing.assert_close(poisson_race(mu, mu)[1], expected)


@pytest.mark.parametrize("method", ["scipy", "quadrature"])
def test_race_gradients(method: str) -> None:
    mu1, mu2 = doubles(0.2, 1, 3, 40, 120).requires_grad_(), doubles(0.5, 1, 2, 30, 130).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: poisson_race(x, y, method), (mu1, mu2))


def test_race_gradients_at_zero() -> None:
    mu1, mu2 = doubles(0, 0, 2), doubles(0, 3, 0)
    torch.testing.assert_close(probability_equal(mu1, mu2), doubles(1, math.exp(-3), math.exp(-2)))
    torch.testing.assert_close(probability_one_more(mu1, mu2), doubles(0, 0, 2 * math.exp(-2)))


def test_race_at_the_extremes() -> None:
    for method in ("scipy", "quadrature"):
        greater, less_equal = poisson_race(doubles(0, 1e9, 1e6, 1e-300), doubles(1e9, 0, 1e6, 1e-300), method)
        assert greater.tolist() == pytest.approx([0, 1, 0.5, 0], abs=1e-3)
        assert less_equal.tolist() == pytest.approx([1, 0, 0.5, 1], abs=1e-3)


def test_automatic_choice_of_the_method() -> None:
    """float64 takes scipy; float32 the quadrature, which differs in the last digits."""
    mu1, mu2 = torch.rand(1000) * 5, torch.rand(1000) * 5
    for dtype, same, other in ((torch.float32, "quadrature", "scipy"), (torch.float64, "scipy", "quadrature")):
        rates = mu1.to(dtype), mu2.to(dtype)
        assert torch.equal(poisson_race(*rates)[0], poisson_race(*rates, same)[0])
        assert not torch.equal(poisson_race(*rates)[0], poisson_race(*rates, other)[0])
    assert poisson_race(torch.empty(3, device="meta"), torch.empty(3, device="meta"), "quadrature")[0].shape == (3,)


# The heads


def test_lh_by_hand() -> None:
    u, v = doubles(1, 0), doubles(0, 0)
    literal, mild = PQELH(2, 2, normalize=False), PQELH(2, 2)
    assert literal.components(u, v).item() == pytest.approx(0.6321206, abs=1e-7)
    assert mild.components(u, v).item() == pytest.approx(0.3934693, abs=1e-7)
    assert literal.components(v, u).item() == 0
    assert PQELH(1, 1).components(doubles(math.log(2)), doubles(0)).item() == pytest.approx(0.5)


def plain_gg(variance: float = 1.0) -> PQEGG:
    """One process, weight 1."""
    head = PQEGG(1, 1, scale="diag").double()
    with torch.no_grad():
        head.raw_variance.fill_(math.log(variance))
    return head


@pytest.mark.parametrize(
    ("u", "v", "variance", "only_u", "only_v", "q"),
    [
        (0, 2, 1, 0.208019711, 0.029701794, 0.182856990),
        (2, 0, 1, 0.029701794, 0.208019711, 0.023841935),
        (1, -1, 1, 0.114351556, 0.114351556, 0.096999113),
        (0, 1, 1, 0.104614726, 0.042215579, 0.095429358),
        (0, 1000, 1, 1 / math.sqrt(4 * math.pi), 0, 0.245797811),
        (1000, 0, 1, 0, 1 / math.sqrt(4 * math.pi), 0),
        (0.5, 3, 2, 0.192274994, 0.022738873, None),
    ],
)
def test_gg_by_hand(u: float, v: float, variance: float, only_u: float, only_v: float, q: float | None) -> None:
    head = plain_gg(variance)
    masses = head.set_differences(doubles(u), doubles(v))
    assert [mass.item() for mass in masses] == pytest.approx([only_u, only_v], abs=1e-9)
    if q is not None:
        assert head.components(doubles(u), doubles(v)).item() == pytest.approx(q, abs=1e-9)


@pytest.mark.parametrize(("u", "v"), [(0.3, 0.31), (-2, 1.5), (4, -1)])
def test_gg_masses_against_integration(u: float, v: float) -> None:
    def mass(a: float, b: float) -> float:
        def height(x: float) -> float:
            return mpmath.npdf(x, 0, mpmath.sqrt(2)) * max(mpmath.npdf(x, a, 1) - mpmath.npdf(x, b, 1), 0)

        return float(mpmath.quad(height, [-12, (a + b) / 2, 12]))

    measured = [value.item() for value in plain_gg(2.0).set_differences(doubles(u), doubles(v))]
    assert measured == pytest.approx([mass(u, v), mass(v, u)], abs=1e-12)


def test_gg_rates_are_divided_by_the_processes_of_a_component() -> None:
    head = PQEGG(2, 2, scale="diag").double()
    _, less_equal = poisson_race(doubles(0.208019711 / 2), doubles(0.029701794 / 2))
    assert head.components(doubles(0, 0), doubles(2, 2)).item() == pytest.approx(1 - less_equal.item() ** 2, abs=1e-8)


def test_gg_full_scale_mixes_processes_with_squared_weights() -> None:
    head = PQEGG(2, 2).double()
    u, v = doubles(0, 1), doubles(2, -1)
    weights = head.scale.net.matrix().square()  # type: ignore[operator, union-attr]
    only_u, only_v = (weights @ mass / 2 for mass in head.set_differences(u, v))
    expected = 1 - poisson_race(only_u, only_v)[1].prod()
    torch.testing.assert_close(head.components(u, v), expected[None])


def test_gg_small_values_keep_their_digits_in_float32() -> None:
    head = plain_gg()
    u, v = doubles(1.0), doubles(1.0 + 1e-4)
    exact = head.components(u, v).item()
    measured = head.float().components(u.float().requires_grad_(), v.float()).item()
    assert 0 < exact < 1e-4
    assert measured == pytest.approx(exact, rel=1e-2)


# The mixtures


def test_discounted_mixture_by_hand() -> None:
    mixture = DiscountedMixture(1, discount=0.5).double()
    with torch.no_grad():
        mixture.net.bias.sub_(mixture.net.matrix())
    assert mixture(doubles(1)).item() == pytest.approx(1)


@pytest.mark.parametrize(("size", "low", "high"), [(16, 2.4023, 3.3073), (32, 3.1174, 4.0095), (64, 3.8214, 4.7071)])
def test_discounted_mixture_starts_in_its_range(size: int, low: float, high: float) -> None:
    mixture = DiscountedMixture(size, discount=0.9)
    logits = mixture.net.matrix()
    assert low - 1e-3 < logits.min() < logits.max() < high + 1e-3
    half = 0.9 ** mixture(torch.full((size,), 0.5)).item()
    assert 0.5 < half < 0.75


def test_distance_mixture_starts_near_one() -> None:
    torch.manual_seed(0)
    totals = torch.stack([DistanceMixture(16)(torch.ones(16)) for _ in range(100)])
    assert 0.7 < totals.mean() < 1.4
    assert (totals > 0).all()


def test_mixtures_are_the_product_of_discounts() -> None:
    mixture = DiscountedMixture(5, discount=0.9).double()
    q = torch.rand(7, 5, dtype=torch.float64)
    product = (mixture.net.matrix().squeeze(-1).sigmoid() ** q).prod(-1)
    torch.testing.assert_close(0.9 ** mixture(q), product)


@pytest.mark.parametrize(("size", "expected"), [(4, 8516), (6, 8646), (8, 8776), (12, 9036), (64, 12416)])
def test_lh_parameters(size: int, expected: int) -> None:
    assert count(PQELH(4 * size, 4)) == expected


@pytest.mark.parametrize(("size", "expected"), [(48, 16688), (256, 327936)])
def test_gg_parameters(size: int, expected: int) -> None:
    assert count(PQEGG(size, 4)) - count(PQELH(size, 4)) == expected


def test_deep_linear_collapses_to_its_product() -> None:
    net = DeepLinear(3, 2).double()
    with torch.no_grad():
        net.bias.add_(1)
    x = torch.randn(5, 3, dtype=torch.float64)
    step = x
    for factor in net.factors:
        step = step @ factor.mT
    torch.testing.assert_close(x @ net.matrix().mT, step + x.sum(-1, keepdim=True))


def test_iqe_is_the_limit_of_lh() -> None:
    """1 - exp(-c #{j : u_j < t <= v_j}), integrated over t, goes to the length of the union as c grows."""
    for strength in (1.0, 10.0):
        head = PQELH(2, 2, normalize=False)
        t = torch.linspace(-0.5, 2.5, 30_001, dtype=torch.float64)
        inside = ((t[:, None] > doubles(0, 0.5)) & (t[:, None] <= doubles(1, 2))).double()
        area = head.components(strength * inside, torch.zeros_like(inside)).mean().item() * 3
        single, double = 1 - math.exp(-strength), 1 - math.exp(-2 * strength)
        assert area == pytest.approx(1.5 * single + 0.5 * double, abs=1e-3)


def test_bad_values() -> None:
    with pytest.raises(ConfigError, match="unknown mode 'both'"):
        PQELH(8, mode="both")
    with pytest.raises(ConfigError, match="unknown scale 'some'"):
        PQEGG(8, scale="some")
    with pytest.raises(ShapeError, match="cannot be split"):
        PQEGG(9)
