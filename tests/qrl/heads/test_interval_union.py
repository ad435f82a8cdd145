import logging

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from qrl.heads.interval_union import (
    _compared_ends,
    _compared_length,
    _earlier,
    compiled_interval_union,
    interval_union,
)
from tests.compiler import needs_compiler
from tests.heads import randn

HAND_CASES = [
    ([0, 0], [1, 2], 2),  # nested
    ([0, 3], [1, 5], 3),  # disjoint
    ([0, 0.5], [1, 2], 2),  # overlapping
    ([0, 1], [1, 2], 2),  # touching
    ([0, 1, 5], [2, 3, 4], 3),  # the third is empty
    ([1, 2, 3], [0, 2, -1], 0),  # all are empty
    ([5, 0], [7, 10], 10),  # not sorted, nested
]


def merged_length(u: list[float], v: list[float]) -> float:
    """Merge the intervals one by one, as by hand."""
    blocks: list[list[float]] = []
    for left, right in sorted((a, b) for a, b in zip(u, v, strict=True) if b > a):
        if blocks and left <= blocks[-1][1]:
            blocks[-1][1] = max(blocks[-1][1], right)
        else:
            blocks.append([left, right])
    return sum(right - left for left, right in blocks)


@pytest.mark.parametrize(("u", "v", "expected"), HAND_CASES)
def test_hand_cases(u: list[float], v: list[float], expected: float) -> None:
    assert interval_union(torch.tensor(u), torch.tensor(v)).item() == expected
    assert merged_length(u, v) == expected


def test_gradient_by_hand() -> None:
    u, v = torch.tensor([0.0, 1, 5], requires_grad=True), torch.tensor([2.0, 3, 4], requires_grad=True)
    interval_union(u, v).backward()
    assert u.grad is not None
    assert v.grad is not None
    assert (u.grad.tolist(), v.grad.tolist()) == ([-1, 0, 0], [0, 1, 0])


# A coarse grid makes ties and touching intervals likely; its sums are exact in float64.
ends = st.integers(-20, 20).map(lambda number: number / 4) | st.floats(-1e3, 1e3, allow_subnormal=False)


@given(st.integers(1, 9).flatmap(lambda size: st.tuples(*[st.lists(ends, min_size=size, max_size=size)] * 2)))
def test_equals_merging_intervals(latents: tuple[list[float], list[float]]) -> None:
    u, v = latents
    measured = interval_union(torch.tensor(u, dtype=torch.float64), torch.tensor(v, dtype=torch.float64)).item()
    assert measured == pytest.approx(merged_length(u, v), abs=1e-9)
    excess = [max(b - a, 0) for a, b in zip(u, v, strict=True)]
    assert max(excess) - 1e-9 <= measured <= sum(excess) + 1e-9


@given(st.integers(0, 10**6))
def test_equals_merging_in_bulk(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    u, v = (torch.randn(6, 4, 8, generator=generator, dtype=torch.float64) for _ in range(2))
    pairs = zip(u.flatten(0, 1).tolist(), v.flatten(0, 1).tolist(), strict=True)
    expected = torch.tensor([merged_length(a, b) for a, b in pairs], dtype=torch.float64)
    torch.testing.assert_close(interval_union(u, v), expected.view(6, 4))


def test_gradient_is_the_ends_of_merged_blocks() -> None:
    u, v = (randn(200, 8, seed=seed).requires_grad_() for seed in (0, 1))
    interval_union(u, v).sum().backward()

    def block_ends(left: list[float], right: list[float]) -> tuple[list[int], list[int]]:
        valid = [j for j in range(8) if right[j] > left[j]]
        starts = [-int(j in valid and not any(left[i] < left[j] <= right[i] for i in valid)) for j in range(8)]
        stops = [int(j in valid and not any(left[i] <= right[j] < right[i] for i in valid)) for j in range(8)]
        return starts, stops

    expected = [block_ends(a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    assert u.grad is not None
    assert v.grad is not None
    assert u.grad.tolist() == [starts for starts, _ in expected]
    assert v.grad.tolist() == [stops for _, stops in expected]


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e6, 1e30])
def test_exactly_zero_and_never_negative_in_float32(scale: float) -> None:
    u = scale * torch.randn(500, 4, 8, generator=torch.Generator().manual_seed(0))
    below = u - scale * torch.rand(u.shape, generator=torch.Generator().manual_seed(1))
    for v in (u.clone(), below):
        left, right = u.clone().requires_grad_(), v.requires_grad_()
        q = interval_union(left, right)
        q.sum().backward()
        assert (q == 0).all()
        assert left.grad is not None
        assert right.grad is not None
        assert (left.grad == 0).all()
        assert (right.grad == 0).all()
    assert (interval_union(u, u.flip(0)) >= 0).all()


def test_ties_are_deterministic() -> None:
    u = torch.zeros(3, 8).requires_grad_()
    v = torch.ones(3, 8).requires_grad_()

    def gradients() -> list[Tensor]:
        return list(torch.autograd.grad(interval_union(u, v).sum(), (u, v)))

    first, second = gradients(), gradients()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    # Whichever of the tied ends receives it, the total gradient is that of one block from 0 to 1.
    assert first[0].sum(-1).tolist() == [-1, -1, -1]
    assert first[1].sum(-1).tolist() == [1, 1, 1]


def test_one_interval_is_the_positive_part() -> None:
    u, v = torch.randn(100, 1), torch.randn(100, 1)
    assert torch.equal(interval_union(u, v), (v - u).clamp(min=0).squeeze(-1))


def test_gradients_of_gradients() -> None:
    """The second derivative of the union is 0, but a penalty on its gradient must reach earlier layers."""
    u, v = randn(5, 4).requires_grad_(), randn(5, 4, seed=1)
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad((scale * interval_union(u, v)).sum(), u, create_graph=True)
    (penalty,) = torch.autograd.grad(grad.square().sum(), scale)
    assert penalty.item() == pytest.approx(2 * scale.item() * (grad / scale).square().sum().item())


BROADCAST_SHAPES = [
    ((6, 1, 3, 4), (1, 5, 3, 4)),  # all pairs
    ((1, 5, 3, 4), (6, 1, 3, 4)),
    ((7, 2, 1, 3, 4), (7, 1, 2, 3, 4)),  # all pairs of actions
    ((3, 4), (7, 3, 4)),  # fewer dimensions
    ((7, 5, 3, 4), (1, 1, 3, 4)),
    ((1, 1, 3, 4), (1, 1, 3, 4)),
]


@pytest.mark.parametrize("chunk", [1, 130, 10**6])  # a row, some rows with a smaller last chunk, everything
@pytest.mark.parametrize(("u_shape", "v_shape"), BROADCAST_SHAPES)
def test_gradients_of_broadcast_latents(
    u_shape: tuple[int, ...], v_shape: tuple[int, ...], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They, and their own gradients, are the sums of those of latents that are repeated explicitly."""
    monkeypatch.setattr("qrl.heads.interval_union._CHUNK", chunk)
    u, v = randn(*u_shape).requires_grad_(), randn(*v_shape, seed=1).requires_grad_()
    shape = torch.broadcast_shapes(u_shape, v_shape)
    weights = randn(*shape[:-1], seed=2).requires_grad_()

    def gradients(a: Tensor, b: Tensor) -> list[Tensor]:
        first = torch.autograd.grad((weights * interval_union(a, b)).sum(), (u, v), create_graph=True)
        penalty = first[0].square().sum() + first[1].square().sum()
        return [*first, *torch.autograd.grad(penalty, weights)]

    for measured, expected in zip(gradients(u, v), gradients(u.expand(shape), v.expand(shape)), strict=True):
        torch.testing.assert_close(measured, expected)


def compared(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The compiled functions, called uncompiled: lengths and ends, after checking that both agree on the length."""
    length, lefts, rights = _compared_ends(u, v, _earlier(u))
    assert _compared_length(u, v, _earlier(u)).equal(length) or length.isnan().any()
    return length, lefts, rights


@pytest.mark.parametrize(("u", "v", "expected"), HAND_CASES)
def test_the_compiled_function_by_hand(u: list[float], v: list[float], expected: float) -> None:
    assert compared(torch.tensor(u).double(), torch.tensor(v).double())[0].item() == expected


@given(st.integers(1, 9).flatmap(lambda size: st.tuples(*[st.lists(ends, min_size=size, max_size=size)] * 2)))
def test_the_compiled_function_equals_merging_intervals(latents: tuple[list[float], list[float]]) -> None:
    u, v = (torch.tensor(latent, dtype=torch.float64) for latent in latents)
    expected = merged_length(*latents)
    length, lefts, rights = compared(u, v)
    assert length.item() == pytest.approx(expected, abs=1e-9)
    # As many left ends as right ends, and ties give neither twice.
    assert lefts.sum() == rights.sum()
    assert (rights * v - lefts * u).sum().item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("index", [0, 3, 7])
def test_the_compiled_function_hides_no_nan(index: int) -> None:
    u, v = randn(5, 8), randn(5, 8, seed=1)
    u[1, index] = v[2, index] = float("nan")
    for length in (compared(u, v)[0], _compared_length(u, v, _earlier(u))):
        assert length.isnan().tolist() == [False, True, True, False, False]


def test_many_intervals_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("length", "ends"):
        monkeypatch.setattr(f"qrl.heads.interval_union._compiled_{name}", lambda *_: pytest.fail("compiled"))
    u, v = randn(3, 65), randn(3, 65, seed=1).requires_grad_()
    assert compiled_interval_union(u, v).equal(interval_union(u, v))
    with torch.no_grad():
        assert compiled_interval_union(u, v).equal(interval_union(u, v))


@needs_compiler
def test_many_shapes_stay_compiled(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("torch._dynamo"), "propagate", True)  # otherwise caplog does not see it
    with torch.no_grad():
        for size in range(2, 12):
            compiled_interval_union(randn(size, 2), randn(size, 2, seed=1))
    assert "recompile_limit" not in caplog.text


@needs_compiler
@pytest.mark.parametrize(("intervals", "dtype"), [(4, torch.float64), (9, torch.float32)])
def test_the_compiled_union_equals_the_plain_one(intervals: int, dtype: torch.dtype) -> None:
    a = randn(6, 1, 3, intervals).to(dtype).requires_grad_()
    b = randn(1, 5, 3, intervals, seed=1).to(dtype).requires_grad_()
    expected = interval_union(a, b)
    with torch.no_grad():
        torch.testing.assert_close(compiled_interval_union(a, b), expected)
    measured = compiled_interval_union(a, b)
    torch.testing.assert_close(measured, expected)
    weights = randn(6, 5, 3, seed=2).to(dtype)
    for gradient, expected_gradient in zip(
        torch.autograd.grad((measured * weights).sum(), (a, b)),
        torch.autograd.grad((expected * weights).sum(), (a, b)),
        strict=True,
    ):
        torch.testing.assert_close(gradient, expected_gradient)
    # Compiled kernels propagate NaN.
    with torch.no_grad():
        a[3, 0, 1, 0] = a[4, 0, 0, -1] = b[0, 2, 2, 1] = float("nan")
        torch.testing.assert_close(compiled_interval_union(a, b), interval_union(a, b), equal_nan=True)
        assert compiled_interval_union(a, b).isnan().sum() == 5 + 5 + 6
    assert compiled_interval_union(a, b).isnan().sum() == 5 + 5 + 6
