"""Encoders: multilayer perceptrons with optionally weighted batch statistics.

Given distinct rows and their counts, batch-normalized networks take a faster path with samples as columns: the matrix
products are faster, and the statistics of a feature are sums over contiguous memory. The network is then one function
with a hand-written gradient, which halves the passes over memory; compiled, it makes one pass between two products.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F

from qrl.compiling import Compiled
from qrl.errors import ShapeError

_EPS, _MOMENTUM = 1e-5, 0.1  # of batch normalization
_BLOCK = 8  # matrix products are a tenth faster if the number of columns is a multiple of it
_MIN_TRANSPOSED = 512  # width below which transposing the output costs more than it saves
_MIN_COMPILED = 2**16  # activations per layer below which thousands of steps do not repay the compilation


class MLP(nn.Module):
    """Linear, ReLU and batch normalization (after each activation) per hidden size, then a linear output.

    With counts, the statistics of a training batch are those of every row repeated as often: encoding distinct rows
    equals encoding all repetitions, in values, gradients and running statistics.
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
            output: Tensor
            # Padding outside of the compiled function reduces the number of shapes that it sees.
            if self.norms.training:
                if len(counts) < 2 and counts.sum() < 2:  # reads the sum, which stops a GPU, for a single row only
                    raise ShapeError(
                        "batch normalization in training mode needs counts that sum to at least 2; pass a larger "
                        "batch, or call eval() first"
                    )
                inputs = (_padded(rows), _padded(counts), *self._tensors())
                output = _Counted.apply(compiled, *inputs)  # type: ignore[no-untyped-call]
                return output[: len(rows)]
            if not torch.is_grad_enabled():
                call = _compiled_inference if compiled else _inference
                output = call(_padded(rows), *self._tensors())
                return output[: len(rows)]
        for layer, norm in zip_longest(self.hidden, self.norms):
            rows = F.relu(layer(rows))
            rows = norm(rows) if norm else rows
        outputs: Tensor = self.output(rows)
        return outputs

    def _tensors(self) -> Iterator[Tensor]:
        """Seven tensors per hidden layer, then weight and bias of the output layer."""
        for layer, norm in zip(self.hidden, self.norms, strict=True):
            yield from (layer.weight, layer.bias, norm.weight, norm.bias)  # type: ignore[misc]
            yield from (norm.running_mean, norm.running_var, norm.num_batches_tracked)  # type: ignore[misc]
        yield from (self.output.weight, self.output.bias)

    def accelerate_(self) -> None:
        self.accelerated = True


def _by_layer(tensors: Sequence[Tensor], size: int) -> list[Sequence[Tensor]]:
    return [tensors[start : start + size] for start in range(0, len(tensors), size)]


def _padded(rows: Tensor) -> Tensor:
    """The rows, padded with zeros to a multiple of the block size."""
    return F.pad(rows, (0, 0) * (rows.ndim - 1) + (0, -len(rows) % _BLOCK))


class _Counted(torch.autograd.Function):
    """The network in training mode, with its gradient."""

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
    """The output rows, and the tensors that `_backward` needs."""
    columns, counts = rows.t(), counts.to(rows.dtype)
    total = counts.sum()
    fractions = counts / total
    kept: list[Tensor] = []
    for weight, bias, scale, shift, running_mean, running_variance, batches in _by_layer(tensors[:-2], 7):
        active = _active(weight @ columns, bias)
        mean = active @ fractions
        variance = (active - mean[:, None]).square_() @ fractions
        inverse = (variance + _EPS).rsqrt()
        running_mean.lerp_(mean, _MOMENTUM)
        running_variance.lerp_(variance * (total / (total - 1)), _MOMENTUM)  # unbiased
        batches.add_(1)
        kept += (weight, scale, columns, active, mean, inverse)
        columns = _normed(active, mean, inverse, scale, shift)
    return _rows(columns, *tensors[-2:]), fractions, columns, tensors[-2], *kept


def _backward(
    grad: Tensor, rows_too: bool, fractions: Tensor, last: Tensor, output_weight: Tensor, *kept: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients for the rows, if requested, and for all tensors of the network."""
    grad = grad.t()
    gradients: list[Tensor | None] = [grad @ last.t(), grad.sum(1)]
    above = output_weight
    for weight, scale, columns, active, mean, inverse in reversed(_by_layer(kept, 6)):
        grad = above.t() @ grad
        centered = active - mean[:, None]
        for_shift = grad.sum(1)
        for_scale = (grad * centered).sum(1) * inverse
        through_statistics = centered.mul_((for_scale * inverse)[:, None]).add_(for_shift[:, None]).mul_(fractions)
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
    """relu(columns + bias), written so that the compiler does not fuse the sum into the product, which is slower."""
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
