import math

import mpmath
import pytest
import torch

from qrl.catalog import count_parameters
from qrl.common.errors import ConfigError
from qrl.errors import ShapeError
from qrl.heads import PQEGG, PQELH
from qrl.heads.poisson_race import poisson_race
from tests.heads import doubles


def test_lh_by_hand() -> None:
    u, v = doubles(1, 0), doubles(0, 0)
    summed, averaged = PQELH(2, 2, normalize=False), PQELH(2, 2)
    assert summed.components(u, v).item() == pytest.approx(0.6321206, abs=1e-7)
    assert averaged.components(u, v).item() == pytest.approx(0.3934693, abs=1e-7)
    assert summed.components(v, u).item() == 0
    assert PQELH(1, 1).components(doubles(math.log(2)), doubles(0)).item() == pytest.approx(0.5)


def plain_gg(variance: float = 1.0) -> PQEGG:
    """One process with weight 1."""
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
            density: float = mpmath.npdf(x, 0, mpmath.sqrt(2)) * max(mpmath.npdf(x, a, 1) - mpmath.npdf(x, b, 1), 0)
            return density

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


@pytest.mark.parametrize(("size", "expected"), [(4, 8516), (6, 8646), (8, 8776), (12, 9036), (64, 12416)])
def test_lh_parameters(size: int, expected: int) -> None:
    assert count_parameters(PQELH(4 * size, 4)) == expected


@pytest.mark.parametrize(("size", "expected"), [(48, 16688), (256, 327936)])
def test_gg_parameters(size: int, expected: int) -> None:
    assert count_parameters(PQEGG(size, 4)) - count_parameters(PQELH(size, 4)) == expected


def test_iqe_is_the_limit_of_lh() -> None:
    """1 - exp(-c #{j : u_j < t <= v_j}), integrated over t, tends to the length of the union as c grows."""
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
