"""The length of a union of intervals: a plain implementation, which sorts, and one that is compiled."""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional as F

from qrl.compiling import Compiled


def interval_union(u: Tensor, v: Tensor) -> Tensor:
    """The length of the union over j of [u_j, max(u_j, v_j)]: (..., l) and (..., l) give (...).

    Intervals are visited in the order of their left ends; each adds its part beyond the furthest right end so far. The
    value is thus a sum of non-negative lengths: exactly 0, with zero gradient, wherever v <= u. The gradient is 1 for
    the right ends of blocks of merged intervals and -1 for their left ends.

    In a function or module given to torch.compile, this is `compiled_interval_union`.
    """
    length: Tensor = _Union.apply(u, v, torch.compiler.is_compiling())  # type: ignore[no-untyped-call]
    return length


def compiled_interval_union(u: Tensor, v: Tensor) -> Tensor:
    """`interval_union` up to rounding, by torch.compile: needs a C++ compiler and some seconds at the first call.

    At ties, a different endpoint may receive the gradient.
    """
    length: Tensor = _Union.apply(u, v, True)  # type: ignore[no-untyped-call]
    return length


class _Union(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, u: Tensor, v: Tensor, compiled: bool) -> Tensor:
        compiled = compiled and u.shape[-1] <= _MAX_COMPARED
        if not any(ctx.needs_input_grad):  # type: ignore[attr-defined]
            return _fast_length(u, v) if compiled else _sorted_length(u, v)
        value, lefts, rights = _fast_ends(u, v) if compiled else _sorted_ends(u, v)
        ctx.shapes = u.shape, v.shape  # type: ignore[attr-defined]
        ctx.save_for_backward(lefts, rights)
        return value

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Differentiable, so that gradient penalties work."""
        lefts, rights = ctx.saved_tensors  # type: ignore[attr-defined]
        u_shape, v_shape = ctx.shapes  # type: ignore[attr-defined]
        grad = grad.unsqueeze(-1)
        return _summed_product(-grad, lefts, u_shape), _summed_product(grad, rights, v_shape), None


_CHUNK = 2**20  # elements; a product of this size stays in the cache, and there are few chunks


def _summed_product(grad: Tensor, indicators: Tensor, shape: torch.Size) -> Tensor:
    """(grad * indicators).sum_to_size(shape), differentiable.

    If it sums, as for all pairs of a batch, then in chunks: the whole product would be as large as the indicators.
    torch.compile fuses both, and never stores the product.
    """
    if torch.compiler.is_compiling() or shape == indicators.shape or indicators.numel() <= _CHUNK:
        return (grad * indicators).sum_to_size(shape)
    rows = max(1, _CHUNK // indicators[0].numel())
    chunks = zip(grad.split(rows), indicators.split(rows), strict=True)
    if len(shape) == indicators.ndim and shape[0] == len(indicators):
        return torch.cat([(part * ends).sum_to_size(len(ends), *shape[1:]) for part, ends in chunks])
    return torch.stack([(part * ends).sum_to_size(shape) for part, ends in chunks]).sum(0)


# The plain implementation sorts.


def _sort(u: Tensor, v: Tensor) -> tuple[Sequence[Tensor], Sequence[Tensor], Tensor]:
    """Left and right ends (l, ...) sorted by the left ones, and the sorting permutation (..., l)."""
    # The order depends on u alone, so sorting precedes broadcasting against v.
    lefts, order = u.sort(dim=-1)
    order, v = torch.broadcast_tensors(order, v)
    rights = v.gather(-1, order)
    return _interval_first(lefts).unbind(0), _interval_first(rights).unbind(0), order


def _interval_first(x: Tensor) -> Tensor:
    """(..., l) to (l, ...), so that every iteration over intervals reads contiguous memory."""
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
    """Lengths (...), and indicators (..., l) of the intervals at the left and at the right ends of blocks."""
    lefts, rights, order = _sort(u, v)
    length = torch.zeros_like(rights[0])
    furthest = torch.full_like(length, -torch.inf)
    begins, extends = [], []
    for left, right in zip(lefts, rights, strict=True):
        reached = torch.maximum(left, furthest)
        extends.append(right > reached)
        begins.append(extends[-1] & (left >= furthest))
        length = length + F.relu(right - reached)
        furthest = torch.maximum(furthest, right)
    # Backwards: an interval that extends a block is its right end if the next extending interval begins a new block.
    ends = []
    last = torch.ones_like(length, dtype=torch.bool)
    for extend, begin in zip(reversed(extends), reversed(begins), strict=True):
        ends.append(extend & last)
        last = torch.where(extend, begin, last)
    indicators = (torch.stack(flags, -1).to(length.dtype) for flags in (begins, ends[::-1]))
    begin, end = (torch.empty_like(flags).scatter_(-1, order, flags) for flags in indicators)
    return length, begin, end


# The compiled implementation compares all pairs of intervals: without a sort, it is a single loop over memory.

_MAX_COMPARED = 64  # with more intervals there is less to gain, and compiling takes minutes


def _earlier(x: Tensor) -> Tensor:
    """(l, l): 1 in row i for columns after i. Passed as an argument, because compiled code would use slow integers."""
    return torch.ones(x.shape[-1], x.shape[-1], dtype=x.dtype, device=x.device).triu(1)


def _compared_length(u: Tensor, v: Tensor, earlier: Tensor) -> Tensor:
    return F.relu(v - torch.maximum(u, _reached(u, v, earlier))).sum(-1)


def _compared_ends(u: Tensor, v: Tensor, earlier: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths (...), and indicators (..., l) of the intervals at the left and at the right ends of blocks.

    A block begins at an interval whose left end no earlier interval reaches, and ends likewise.
    """
    reached = _reached(u, v, earlier)
    begun = -_reached(-v, -u, earlier)
    # Floats, because booleans would prevent vectorization.
    lefts = torch.where((v > u) & (reached <= u), 1.0, 0.0).to(u.dtype)
    rights = torch.where((v > u) & (begun >= v), 1.0, 0.0).to(u.dtype)
    return F.relu(v - torch.maximum(u, reached)).sum(-1), lefts, rights


def _reached(u: Tensor, v: Tensor, earlier: Tensor) -> Tensor:
    """(..., l): the furthest right end of the intervals before each one; ties are ordered by index."""
    reached = torch.full_like(u, -torch.inf)
    for index in range(u.shape[-1]):
        left, right = u[..., index, None], v[..., index, None]
        before = (left < u) | ((left == u) & (earlier[index] > 0))
        reached = torch.where(before, torch.maximum(reached, right), reached)
    return reached


# One loop over memory regardless of the number of operations: by default the compiler splits it at 64.
_kernel = functools.partial(Compiled, max_fusion_size=2**20)
_length_kernel = functools.partial(_kernel, _compared_length, lambda u, v, _: _sorted_length(u, v))
_ends_kernel = functools.partial(_kernel, _compared_ends, lambda u, v, _: _sorted_ends(u, v))
_compiled_length, _compiled_ends = _length_kernel(dynamic=False), _ends_kernel(dynamic=False)
# Of (n, l) and (n, l), without broadcasting: as fast, and compiled once for every n.
_flat_length, _flat_ends = _length_kernel(dynamic=True), _ends_kernel(dynamic=True)


# To torch.compile, the kernels are operators: traced, they would lose their options, and the backward pass would repeat
# them instead of saving their results.


@torch.library.custom_op("qrl::interval_union_length", mutates_args=())
def _length_operator(u: Tensor, v: Tensor) -> Tensor:
    length: Tensor
    if u.shape == v.shape:
        length = _flat_length(u.reshape(-1, u.shape[-1]), v.reshape(-1, v.shape[-1]), _earlier(u))
        return length.reshape(u.shape[:-1])
    length = _compiled_length(u, v, _earlier(u))
    return length.contiguous()


@torch.library.custom_op("qrl::interval_union_ends", mutates_args=())
def _ends_operator(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if u.shape == v.shape:
        length, lefts, rights = _flat_ends(u.reshape(-1, u.shape[-1]), v.reshape(-1, v.shape[-1]), _earlier(u))
        return length.reshape(u.shape[:-1]), lefts.reshape(u.shape), rights.reshape(u.shape)
    length, lefts, rights = _compiled_ends(u, v, _earlier(u))
    return length.contiguous(), lefts.contiguous(), rights.contiguous()


@_length_operator.register_fake
def _(u: Tensor, v: Tensor) -> Tensor:
    return u.new_empty(torch.broadcast_shapes(u.shape, v.shape)[:-1])


@_ends_operator.register_fake
def _(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    shape = torch.broadcast_shapes(u.shape, v.shape)
    return u.new_empty(shape[:-1]), u.new_empty(shape), u.new_empty(shape)


def _fast_length(u: Tensor, v: Tensor) -> Tensor:
    length: Tensor = _length_operator(u, v) if torch.compiler.is_compiling() else _compiled_length(u, v, _earlier(u))
    return length


def _fast_ends(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    compiling = torch.compiler.is_compiling()
    length, lefts, rights = _ends_operator(u, v) if compiling else _compiled_ends(u, v, _earlier(u))
    return length, lefts, rights
