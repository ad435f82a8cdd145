import functools
import math

import mpmath
import pytest
import torch

from qrl.heads.poisson_race import poisson_race, probability_equal, probability_one_more
from tests.heads import doubles

RATES = [0, 1e-8, 1e-4, 0.03, 0.3, 0.49, 1, 2, 10, 30, 90, 110, 400]


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
    """Use scipy for float64 and quadrature for float32, which differ in the last digits."""
    mu1, mu2 = torch.rand(1000) * 5, torch.rand(1000) * 5
    for dtype, same, other in ((torch.float32, "quadrature", "scipy"), (torch.float64, "scipy", "quadrature")):
        rates = mu1.to(dtype), mu2.to(dtype)
        assert torch.equal(poisson_race(*rates)[0], poisson_race(*rates, same)[0])
        assert not torch.equal(poisson_race(*rates)[0], poisson_race(*rates, other)[0])
    assert poisson_race(torch.empty(3, device="meta"), torch.empty(3, device="meta"), "quadrature")[0].shape == (3,)
