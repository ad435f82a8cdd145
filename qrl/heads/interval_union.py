"""How much of the line a union of intervals covers: the plain form, and the same compiled."""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F


def interval_union(u: Tensor, v: Tensor) -> Tensor:
    """The length of the union over j of [u_j, max(u_j, v_j)]: (..., l) and (..., l) give (...).

    Intervals are walked by their left ends, each adding what lies beyond the furthest right end so far. So the value is
    a sum of non-negative lengths: exactly 0, with zero gradient, wherever v <= u. The gradient is 1 for the right ends
    of blocks of merged intervals and -1 for their left ends.
    """
    return _Union.apply(u, v, False)  # type: ignore[no-untyped-call]


def compiled_interval_union(u: Tensor, v: Tensor) -> Tensor:
    """`interval_union` up to rounding, by torch.compile: needs a C++ compiler and some seconds at its first use."""
    return _Union.apply(u, v, True)  # type: ignore[no-untyped-call]


class _Union(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, u: Tensor, v: Tensor, compiled: bool) -> Tensor:
        u, v = u.detach(), v.detach()  # the compiler looks at .grad, and warns where there can be none
        if not any(ctx.needs_input_grad):  # type: ignore[attr-defined]
            if compiled:
                return _compiled(_network_length)(_interval_first(u), _interval_first(v))
            return _walk_length(*_sort(u, v)[:2])
        shape = torch.broadcast_shapes(u.shape, v.shape)
        value, lefts, rights = (_compiled_ends if compiled else _ends)(u.expand(shape), v.expand(shape))
        ctx.shapes = u.shape, v.shape  # type: ignore[attr-defined]
        ctx.save_for_backward(lefts, rights)
        return value

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Differentiable itself, so that gradient penalties work."""
        lefts, rights = ctx.saved_tensors  # type: ignore[attr-defined]
        shapes = ctx.shapes  # type: ignore[attr-defined]
        du, dv = ((-grad * lefts).movedim(0, -1), (grad * rights).movedim(0, -1))
        return du.sum_to_size(shapes[0]), dv.sum_to_size(shapes[1]), None


def _interval_first(x: Tensor) -> Tensor:
    """(..., l) to (l, ...): so every comparison runs over contiguous memory."""
    return x.movedim(-1, 0).contiguous()


def _ends(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths (...), and 1 for the left and right ends of blocks (l, ...)."""
    lefts, rights, places = _sort(u, v)
    length, begins, ends = _walk_ends(lefts, rights)
    return length, _put_back(begins, places), _put_back(ends, places)


def _compiled_ends(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    u, v = _interval_first(u), _interval_first(v)
    if len(u) <= _MAX_COMPARED:
        compared: tuple[Tensor, Tensor, Tensor] = _compiled(_compared_ends)(u, v)
        return compared
    length, places, marks = _compiled(_network_ends)(u, v)
    marks = _put_back(marks, places.long())
    return length, marks.remainder(2), (marks >= 2).to(marks.dtype)


def _put_back(marks: Tensor, places: Tensor) -> Tensor:
    """What was found for the sorted intervals, in the order before."""
    return torch.empty_like(marks).scatter_(0, places, marks)


def _sort(u: Tensor, v: Tensor) -> tuple[Sequence[Tensor], Sequence[Tensor], Tensor]:
    """Left and right ends (l, ...) in the order of the left ones, and their places before."""
    # The order depends on u alone, so it is found before u is repeated for every v.
    lefts, places = u.sort(dim=-1)
    shape = torch.broadcast_shapes(u.shape, v.shape)
    rights = v.expand(shape).gather(-1, places.expand(shape))
    return _interval_first(lefts).unbind(0), _interval_first(rights).unbind(0), _interval_first(places)


# What follows works on intervals (l, ...).


def _walk_length(lefts: Sequence[Tensor], rights: Sequence[Tensor]) -> Tensor:
    furthest = torch.maximum(lefts[0], rights[0])
    length = furthest - lefts[0]
    for left, right in zip(lefts[1:], rights[1:], strict=True):
        length = length + F.relu(right - torch.maximum(left, furthest))
        furthest = torch.maximum(furthest, right)
    return length


def _walk_ends(lefts: Sequence[Tensor], rights: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths, and which of the sorted intervals are the left and the right ends of blocks (l, ...)."""
    length = torch.zeros_like(rights[0])
    furthest = torch.full_like(length, -torch.inf)
    begins, extends = [], []
    for left, right in zip(lefts, rights, strict=True):
        reached = torch.maximum(left, furthest)
        beyond = right > reached
        # Numbers, not flags: those would keep the compiler from using the processor's vectors.
        extends.append(torch.where(beyond, 1.0, 0.0).to(length.dtype))
        begins.append(torch.where(beyond & (left >= furthest), 1.0, 0.0).to(length.dtype))
        length = length + F.relu(right - reached)
        furthest = torch.maximum(furthest, right)
    # Backwards: what extends a block is its right end if the next that extends anything begins a new block.
    ends = []
    last = torch.ones_like(length)
    for beyond, begin in zip(reversed(extends), reversed(begins), strict=True):
        ends.append(beyond * last)
        last = torch.where(beyond > 0, begin, last)
    return length, torch.stack(begins), torch.stack(ends[::-1])


# The forms that are compiled: without torch.sort, so that all is one loop over memory.

_MAX_COMPARED = 8  # up to so many intervals, comparing all with all is faster than sorting and putting back


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled; where that fails, as without the headers that it needs, the function itself."""
    # One loop over memory, however many operations it has: by default the compiler cuts it at 64.
    compiled = torch.compile(function, dynamic=False, options={"max_fusion_size": 2**20})
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


def _compared_ends(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """No sort: an interval begins a block if no other one that begins before it reaches over its left end.

    The right ends of blocks likewise; of equal ends the first is taken.
    """
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
    # Comparisons with NaN are false, which would hide it; minima do not.
    least = functools.reduce(torch.minimum, (*u.unbind(0), *v.unbind(0)))
    return torch.where(least.isnan(), least, F.relu(length)), torch.stack(lefts), torch.stack(rights)


def _network_length(u: Tensor, v: Tensor) -> Tensor:
    lefts, rights, _ = _network_sort(u, v, with_places=False)
    return _walk_length(lefts, rights)


def _network_ends(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths, and for the sorted intervals: their places, and 1 for a left end of a block plus 2 for a right one."""
    lefts, rights, places = _network_sort(u, v, with_places=True)
    length, begins, ends = _walk_ends(lefts, rights)
    return length, torch.stack(places), begins + 2 * ends


def _network_sort(u: Tensor, v: Tensor, with_places: bool) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The intervals in the order of their left ends, and where they come from."""
    lefts, rights = list(u.unbind(0)), list(v.unbind(0))
    places = [torch.full_like(lefts[0], float(place)) for place in range(len(lefts))] if with_places else []
    for a, b in _sorting_network(len(lefts)):
        swap = lefts[a] > lefts[b]
        for carried in (rights, places) if with_places else (rights,):
            carried[a], carried[b] = (
                torch.where(swap, carried[b], carried[a]),
                torch.where(swap, carried[a], carried[b]),
            )
        lefts[a], lefts[b] = torch.minimum(lefts[a], lefts[b]), torch.maximum(lefts[a], lefts[b])
    return lefts, rights, places


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
