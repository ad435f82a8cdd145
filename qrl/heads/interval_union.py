"""How much of the line a union of intervals covers: the plain form, and the same compiled."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F


def interval_union(u: Tensor, v: Tensor) -> Tensor:
    """The length of the union over j of [u_j, max(u_j, v_j)]: (..., l) and (..., l) give (...).

    Intervals are walked by their left ends, each adding what lies beyond the furthest right end so far. So the value is
    a sum of non-negative lengths: exactly 0, with zero gradient, wherever v <= u.
    """
    # The order depends on u alone, so it is found before u is repeated for every v. It is stable: equal left ends keep
    # their order, so ties are deterministic.
    lefts, order = u.sort(dim=-1, stable=True)
    shape = torch.broadcast_shapes(u.shape, v.shape)
    rights = v.expand(shape).gather(-1, order.expand(shape))
    left, right = lefts[..., 0], rights[..., 0]
    furthest = torch.maximum(left, right)
    length = F.relu(right - left)  # relu and not clamp: at 0 it passes no gradient
    for left, right in zip(lefts[..., 1:].unbind(-1), rights[..., 1:].unbind(-1), strict=True):
        length = length + F.relu(right - torch.maximum(left, furthest))
        furthest = torch.maximum(furthest, right)
    return length


def compiled_interval_union(u: Tensor, v: Tensor) -> Tensor:
    """`interval_union` up to rounding, by torch.compile: needs a C++ compiler and some seconds at its first use.

    No sort: an interval j is the left end of a block of merged intervals if no other one that begins before it reaches
    over its left end, and the right end of a block likewise. The value is the sum of right ends minus that of left
    ends, and which ends these are is all that the gradient needs.
    """
    shape = torch.broadcast_shapes(u.shape, v.shape)
    # Interval first, so that every comparison runs over contiguous memory.
    u, v = (x.expand(shape).movedim(-1, 0).reshape(shape[-1], -1) for x in (u, v))
    return _CompiledUnion.apply(u, v).view(shape[:-1])  # type: ignore[no-untyped-call]


class _CompiledUnion(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, u: Tensor, v: Tensor) -> Tensor:
        u, v = u.detach(), v.detach()  # the compiler looks at .grad, and warns where there can be none
        if not any(ctx.needs_input_grad):  # type: ignore[attr-defined]
            return _compiled(_sorted_length)(u, v)
        length, lefts, rights = _compiled(_block_ends)(u, v)
        ctx.save_for_backward(lefts, rights)
        return length

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor]:
        lefts, rights = ctx.saved_tensors  # type: ignore[attr-defined]
        return -grad * lefts, grad * rights


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled; where that fails, as without the headers that it needs, the function itself."""
    compiled = torch.compile(function, dynamic=False)
    works = True

    def call(u: Tensor, v: Tensor) -> Any:
        nonlocal works
        if works:
            try:
                return compiled(u, v)
            except Exception as error:  # whatever the compiler or its cache runs into
                works = False
                warnings.warn(f"torch.compile failed, so the plain form is used: {error}", stacklevel=2)
        return function(u, v)

    return call


def _block_ends(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(l, m) intervals: lengths (m,), and 1 for the left and right ends of blocks (l, m). Ties go to the first."""
    count = u.shape[0]
    length = torch.zeros_like(u[0])
    lefts, rights = [], []
    for j in range(count):
        reach, begin = torch.full_like(u[j], -torch.inf), torch.full_like(u[j], torch.inf)
        for i in (*range(j), *range(j + 1, count)):
            before = u[i] <= u[j] if i < j else u[i] < u[j]
            after = v[i] >= v[j] if i < j else v[i] > v[j]
            reach = torch.maximum(reach, torch.where(before, v[i], -torch.inf))
            begin = torch.minimum(begin, torch.where(after, u[i], torch.inf))
        valid = v[j] > u[j]
        lefts.append(torch.where(valid & (reach <= u[j]), 1.0, 0.0).to(u.dtype))
        rights.append(torch.where(valid & (begin >= v[j]), 1.0, 0.0).to(u.dtype))
        length = length + torch.where(rights[j] > 0, v[j], 0) - torch.where(lefts[j] > 0, u[j], 0)
    invalid = (u.isnan() | v.isnan()).any(0)  # comparisons with NaN are false, which would hide it
    return torch.where(invalid, torch.nan, F.relu(length)), torch.stack(lefts), torch.stack(rights)


def _sorted_length(u: Tensor, v: Tensor) -> Tensor:
    """(l, m) intervals: lengths (m,), by a sorting network on the left ends and then as in `interval_union`."""
    lefts, rights = list(u.unbind(0)), list(v.unbind(0))
    for a, b in _sorting_network(len(lefts)):
        swap = lefts[a] > lefts[b]
        rights[a], rights[b] = torch.where(swap, rights[b], rights[a]), torch.where(swap, rights[a], rights[b])
        lefts[a], lefts[b] = torch.minimum(lefts[a], lefts[b]), torch.maximum(lefts[a], lefts[b])
    furthest = torch.maximum(lefts[0], rights[0])
    length = furthest - lefts[0]
    for left, right in zip(lefts[1:], rights[1:], strict=True):
        length = length + F.relu(right - torch.maximum(left, furthest))
        furthest = torch.maximum(furthest, right)
    invalid = (u.isnan() | v.isnan()).any(0)
    return torch.where(invalid, torch.nan, length)


def _sorting_network(count: int) -> list[tuple[int, int]]:
    """Batcher's odd-even merge sort: pairs of places to compare and swap."""
    pairs = []
    span = 1
    while span < count:
        step = span
        while step >= 1:
            for first in range(step % span, count - step, 2 * step):
                for place in range(first, min(first + step, count - step)):
                    if place // (2 * span) == (place + step) // (2 * span):
                        pairs.append((place, place + step))
            step //= 2
        span *= 2
    return pairs
