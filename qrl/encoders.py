"""Encoders: multilayer perceptrons whose batch statistics can count rows.

Distinct rows with counts are few, and where there is batch normalisation take a faster way: features first, and samples
as columns. So the matrix products are faster, and the statistics of a feature are sums over contiguous memory. Then the
network is one function with its gradient by hand: half the passes over memory, and compiled, one call with one pass
between two products.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F

from qrl.compiling import Compiled

_EPS, _MOMENTUM = 1e-5, 0.1  # of batch normalisation
_BLOCK = 8  # matrix products with a multiple of it as the number of columns are a tenth faster
_MIN_TRANSPOSED = 512  # width; below, transposing the output takes longer than it saves
_MIN_COMPILED = 2**16  # numbers in a layer; below, some thousand steps save no more time than compiling takes


class MLP(nn.Module):
    """Linear, ReLU, batch normalisation (after each activation) for every hidden size, then a linear output.

    With counts, the statistics of a training batch are those of every row repeated so often; encoding each distinct one
    once then equals encoding all repetitions: values, gradients and running statistics.
    """

    accelerated = False

    def __init__(self, input_size: int, hidden_sizes: Sequence[int], output_size: int, batch_norm: bool = True) -> None:
        super().__init__()
        widths = [input_size, *hidden_sizes]
        self.hidden = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(size, _EPS, _MOMENTUM) for size in hidden_sizes if batch_norm)
        self.output = nn.Linear(widths[-1], output_size)

    def forward(self, rows: Tensor, counts: Tensor | None = None) -> Tensor:
        """(rows, input_size) to (rows, output_size); `counts` (rows,) says how often each row occurs."""
        if counts is not None and self.norms:
            compiled = self.accelerated and len(rows) * self.output.in_features >= _MIN_COMPILED
            # Padding stays outside of what is compiled, which thus sees fewer shapes.
            if self.norms.training:
                inputs = (_padded(rows), _padded(counts), *self._tensors())
                return _Counted.apply(compiled, *inputs)[: len(rows)]  # type: ignore[no-untyped-call]
            if not torch.is_grad_enabled():
                call = _compiled_inference if compiled else _inference
                return call(_padded(rows), *self._tensors())[: len(rows)]
        for layer, norm in zip_longest(self.hidden, self.norms):
            rows = F.relu(layer(rows))
            rows = norm(rows) if norm else rows
        return self.output(rows)

    def _tensors(self) -> Iterator[Tensor]:
        """Seven of each hidden layer, then weight and bias of the output."""
        for layer, norm in zip(self.hidden, self.norms, strict=True):
            yield from (layer.weight, layer.bias, norm.weight, norm.bias)  # type: ignore[misc]
            yield from (norm.running_mean, norm.running_var, norm.num_batches_tracked)  # type: ignore[misc]
        yield from (self.output.weight, self.output.bias)

    def accelerate_(self) -> None:
        self.accelerated = True


def _by_layer(tensors: Sequence[Tensor], size: int) -> list[Sequence[Tensor]]:
    return [tensors[start : start + size] for start in range(0, len(tensors), size)]


def _padded(rows: Tensor) -> Tensor:
    """The rows, and rows of 0 up to a whole number of blocks."""
    return F.pad(rows, (0, 0) * (rows.ndim - 1) + (0, -len(rows) % _BLOCK))


class _Counted(torch.autograd.Function):
    """The network in training."""

    @staticmethod
    def forward(ctx: FunctionCtx, compiled: bool, rows: Tensor, counts: Tensor, *tensors: Tensor) -> Tensor:
        call = _compiled_forward if compiled else _forward
        output, *kept = call(rows, counts, *tensors)
        ctx.save_for_backward(*kept)
        ctx.compiled = compiled  # type: ignore[attr-defined]
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        call = _compiled_backward if ctx.compiled else _backward  # type: ignore[attr-defined]
        rows_too = ctx.needs_input_grad[1]  # type: ignore[attr-defined]
        for_rows, *gradients = call(grad, rows_too, *ctx.saved_tensors)  # type: ignore[attr-defined]
        return None, for_rows, None, *gradients


def _forward(rows: Tensor, counts: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The output's rows, and what `_backward` needs."""
    columns, counts = rows.t(), counts.to(rows.dtype)
    total = counts.sum()
    shares = counts / total
    kept: list[Tensor] = []
    for weight, bias, scale, shift, running_mean, running_variance, batches in _by_layer(tensors[:-2], 7):
        active = _active(weight @ columns, bias)
        mean = active @ shares
        variance = (active - mean[:, None]).square_() @ shares
        inverse = (variance + _EPS).rsqrt()
        running_mean.lerp_(mean, _MOMENTUM)
        running_variance.lerp_(variance * (total / (total - 1)), _MOMENTUM)  # unbiased
        batches.add_(1)
        kept += (weight, scale, columns, active, mean, inverse)
        columns = _normed(active, mean, inverse, scale, shift)
    return _rows(columns, *tensors[-2:]), shares, columns, tensors[-2], *kept


def _backward(
    grad: Tensor, rows_too: bool, shares: Tensor, last: Tensor, output_weight: Tensor, *kept: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients for the rows, if asked for, and for all tensors of the network."""
    grad = grad.t()
    gradients: list[Tensor | None] = [grad @ last.t(), grad.sum(1)]
    above = output_weight
    for weight, scale, columns, active, mean, inverse in reversed(_by_layer(kept, 6)):
        grad = above.t() @ grad
        centred = active - mean[:, None]
        for_shift = grad.sum(1)
        for_scale = (grad * centred).sum(1) * inverse
        through_statistics = centred.mul_((for_scale * inverse)[:, None]).add_(for_shift[:, None]).mul_(shares)
        grad = (grad - through_statistics).mul_((inverse * scale)[:, None])
        grad = torch.ops.aten.threshold_backward(grad, active, 0)
        gradients[:0] = [grad @ columns.t(), grad.sum(1), for_scale, for_shift, None, None, None]
        above = weight
    return (above.t() @ grad).t() if rows_too else None, *gradients


def _inference(rows: Tensor, *tensors: Tensor) -> Tensor:
    columns = rows.t()
    for weight, bias, scale, shift, mean, variance, _ in _by_layer(tensors[:-2], 7):
        columns = _normed(_active(weight @ columns, bias), mean, (variance + _EPS).rsqrt(), scale, shift)
    return _rows(columns, *tensors[-2:])


def _active(columns: Tensor, bias: Tensor) -> Tensor:
    """relu(columns + bias), written so that the compiler does not make the sum part of the product, which is slower."""
    return torch.maximum(columns, -bias[:, None]).add_(bias[:, None])


def _normed(active: Tensor, mean: Tensor, inverse: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    factor = inverse * scale
    return (active * factor[:, None]).add_((shift - mean * factor)[:, None])


def _rows(columns: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if weight.shape[1] < _MIN_TRANSPOSED:
        return torch.addmm(bias, columns.t(), weight.t())
    return torch.addmm(bias[:, None], weight, columns).t().contiguous()


_compiled_forward, _compiled_backward, _compiled_inference = (
    Compiled(function, dynamic=True) for function in (_forward, _backward, _inference)
)
