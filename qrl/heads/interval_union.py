"""How much of the line a union of intervals covers: the plain form, which sorts, and one to be compiled."""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

from qrl.compiling import Compiled


def interval_union(u: Tensor, v: Tensor) -> Tensor:
    """The length of the union over j of [u_j, max(u_j, v_j)]: (..., l) and (..., l) give (...).

    Intervals are walked by their left ends, each adding what lies beyond the furthest right end so far. So the value is
    a sum of non-negative lengths: exactly 0, with zero gradient, wherever v <= u. The gradient is 1 for the right ends
    of blocks of merged intervals and -1 for their left ends.
    """
    return _Union.apply(u, v, False)  # type: ignore[no-untyped-call]


def compiled_interval_union(u: Tensor, v: Tensor) -> Tensor:
    """`interval_union` up to rounding, by torch.compile: needs a C++ compiler and some seconds at its first use.

    Of equal ends another one may get the gradient.
    """
    return _Union.apply(u, v, True)  # type: ignore[no-untyped-call]


class _Union(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, u: Tensor, v: Tensor, compiled: bool) -> Tensor:
        compiled = compiled and u.shape[-1] <= _MAX_COMPARED
        if not any(ctx.needs_input_grad):  # type: ignore[attr-defined]
            return _compiled_length(u, v, _earlier(u)) if compiled else _sorted_length(u, v)
        value, lefts, rights = _compiled_ends(u, v, _earlier(u)) if compiled else _sorted_ends(u, v)
        ctx.shapes = u.shape, v.shape  # type: ignore[attr-defined]
        ctx.save_for_backward(lefts, rights)
        return value

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Differentiable itself, so that gradient penalties work."""
        lefts, rights = ctx.saved_tensors  # type: ignore[attr-defined]
        shapes = ctx.shapes  # type: ignore[attr-defined]
        grad = grad.unsqueeze(-1)
        return (-grad * lefts).sum_to_size(shapes[0]), (grad * rights).sum_to_size(shapes[1]), None


# The plain form sorts.


def _sort(u: Tensor, v: Tensor) -> tuple[Sequence[Tensor], Sequence[Tensor], Tensor]:
    """Left and right ends (l, ...) in the order of the left ones, and their places before (..., l)."""
    # The order depends on u alone, so it is found before u is repeated for every v.
    lefts, places = u.sort(dim=-1)
    places, v = torch.broadcast_tensors(places, v)
    rights = v.gather(-1, places)
    return _interval_first(lefts).unbind(0), _interval_first(rights).unbind(0), places


def _interval_first(x: Tensor) -> Tensor:
    """(..., l) to (l, ...): so every step of the walk runs over contiguous memory."""
    return x.movedim(-1, 0).contiguous()


def _sorted_length(u: Tensor, v: Tensor) -> Tensor:
    lefts, rights, _ = _sort(u, v)
    furthest = torch.maximum(lefts[0], rights[0])
    length = furthest - lefts[0]
    for left, right in zip(lefts[1:], rights[1:], strict=True):
        length = length + F.relu(right - torch.maximum(left, furthest))
        furthest = torch.maximum(furthest, right)
    return length


def _sorted_ends(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths (...), and 1 for the intervals (..., l) that are the left and the right ends of blocks."""
    lefts, rights, places = _sort(u, v)
    length = torch.zeros_like(rights[0])
    furthest = torch.full_like(length, -torch.inf)
    begins, extends = [], []
    for left, right in zip(lefts, rights, strict=True):
        reached = torch.maximum(left, furthest)
        extends.append(right > reached)
        begins.append(extends[-1] & (left >= furthest))
        length = length + F.relu(right - reached)
        furthest = torch.maximum(furthest, right)
    # Backwards: what extends a block is its right end if the next that extends anything begins a new block.
    ends = []
    last = torch.ones_like(length, dtype=torch.bool)
    for beyond, begin in zip(reversed(extends), reversed(begins), strict=True):
        ends.append(beyond & last)
        last = torch.where(beyond, begin, last)
    marks = (torch.stack(each, -1).to(length.dtype) for each in (begins, ends[::-1]))
    begin, end = (torch.empty_like(each).scatter_(-1, places, each) for each in marks)
    return length, begin, end


# The compiled form compares all intervals with all: no sort, so that all is one loop over memory as it lies.

_MAX_COMPARED = 64  # with more intervals there is less to gain, and compiling takes minutes


def _earlier(x: Tensor) -> Tensor:
    """(l, l): 1 in row i for the columns after i. The compiler would count in slow integers, if it made this itself."""
    return torch.ones(x.shape[-1], x.shape[-1], dtype=x.dtype, device=x.device).triu(1)


def _compared_length(u: Tensor, v: Tensor, earlier: Tensor) -> Tensor:
    return F.relu(v - torch.maximum(u, _reached(u, v, earlier))).sum(-1)


def _compared_ends(u: Tensor, v: Tensor, earlier: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths (...), and 1 for the intervals (..., l) that are the left and the right ends of blocks.

    A block begins where nothing that begins before reaches beyond, and ends likewise.
    """
    reached = _reached(u, v, earlier)
    begun = -_reached(-v, -u, earlier)
    # Numbers, not flags: those would keep the compiler from using the processor's vectors.
    lefts = torch.where((v > u) & (reached <= u), 1.0, 0.0).to(u.dtype)
    rights = torch.where((v > u) & (begun >= v), 1.0, 0.0).to(u.dtype)
    return F.relu(v - torch.maximum(u, reached)).sum(-1), lefts, rights


def _reached(u: Tensor, v: Tensor, earlier: Tensor) -> Tensor:
    """(..., l): how far the intervals reach that begin before each one; of equal ones the first is before."""
    reached = torch.full_like(u, -torch.inf)
    for index in range(u.shape[-1]):
        left, right = u[..., index, None], v[..., index, None]
        before = (left < u) | ((left == u) & (earlier[index] > 0))
        reached = torch.where(before, torch.maximum(reached, right), reached)
    return reached


# One loop over memory, however many operations it has: by default the compiler cuts it at 64.
_kernel = functools.partial(Compiled, dynamic=False, max_fusion_size=2**20)
_compiled_length = _kernel(_compared_length, lambda u, v, _: _sorted_length(u, v))
_compiled_ends = _kernel(_compared_ends, lambda u, v, _: _sorted_ends(u, v))
