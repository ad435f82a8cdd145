"""Encoders: multilayer perceptrons whose batch statistics can count rows.

Distinct rows with counts are few, and take a faster way: features first, and samples as columns. So the matrix products
are faster, and the statistics of a feature are sums over contiguous memory.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F

from qrl.compiling import Compiled

_BLOCK = 8  # matrix products with a multiple of it as the number of columns are a tenth faster
_MIN_COMPILED = 2**16  # below, calling a kernel costs more than it saves


class MLP(nn.Module):
    """Linear, ReLU, batch normalisation (after each activation) for every hidden size, then a linear output."""

    def __init__(self, input_size: int, hidden_sizes: Sequence[int], output_size: int, batch_norm: bool = True) -> None:
        super().__init__()
        widths = [input_size, *hidden_sizes]
        self.hidden = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(widths))
        self.norms = nn.ModuleList(CountedBatchNorm(size) for size in hidden_sizes if batch_norm)
        self.output = nn.Linear(widths[-1], output_size)

    def forward(self, rows: Tensor, counts: Tensor | None = None) -> Tensor:
        """(rows, input_size) to (rows, output_size); `counts` (rows,) says how often each row occurs."""
        if counts is not None:
            return self._features_first(rows, counts)
        for layer, norm in self._layers():
            rows = F.relu(layer(rows))
            rows = norm(rows) if norm else rows
        return self.output(rows)

    def _features_first(self, rows: Tensor, counts: Tensor) -> Tensor:
        size = len(rows)
        padding = (0, -size % _BLOCK)  # columns that occur 0 times
        columns, counts = F.pad(rows.t(), padding), F.pad(counts.to(rows.dtype), padding)
        for layer, norm in self._layers():
            columns = layer.weight @ columns
            columns = norm.activate(columns, layer.bias, counts) if norm else _active(columns, layer.bias)
        return torch.addmm(self.output.bias[:, None], self.output.weight, columns)[:, :size].t().contiguous()

    def _layers(self) -> "Iterator[tuple[nn.Linear, CountedBatchNorm | None]]":
        return zip_longest(self.hidden, self.norms)  # type: ignore[arg-type]


class CountedBatchNorm(nn.BatchNorm1d):
    """Batch normalisation in which a sample may stand for several.

    With counts, the statistics of a training batch are those of every sample repeated so often; encoding each distinct
    one once then equals encoding all repetitions: values, gradients and running statistics.
    """

    accelerated = False

    def activate(self, columns: Tensor, bias: Tensor, counts: Tensor) -> Tensor:
        """ReLU and normalisation of (features, samples) + bias (features,); `counts` is (samples,)."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        compiled = self.accelerated and columns.numel() >= _MIN_COMPILED
        if self.training:
            total = counts.sum()
            normed, mean, variance = _Counted.apply(  # type: ignore[no-untyped-call]
                columns, bias, counts / total, self.weight, self.bias, self.eps, compiled
            )
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(variance * (total / (total - 1)), self.momentum)  # unbiased
                self.num_batches_tracked += 1
            return normed
        call = _compiled_inference if compiled and not torch.is_grad_enabled() else _inference
        return call(columns, bias, self.running_mean, self.running_var, self.weight, self.bias, self.eps)

    def accelerate_(self) -> None:
        self.accelerated = True


class _Counted(torch.autograd.Function):
    """By hand, for half the passes over memory; compiled, all of it is one pass forward and one backward."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        columns: Tensor,
        bias: Tensor,
        shares: Tensor,
        weight: Tensor,
        shift: Tensor,
        eps: float,
        compiled: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.compiled = compiled  # type: ignore[attr-defined]
        call = _compiled_forward if compiled else _forward
        normed, active, mean, variance, inverse = call(columns, bias, shares, weight, shift, eps)
        ctx.save_for_backward(active, shares, weight, mean, inverse)
        ctx.mark_non_differentiable(mean, variance)
        return normed, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        call = _compiled_backward if ctx.compiled else _backward  # type: ignore[attr-defined]
        for_columns, for_bias, for_weight, for_shift = call(grad, *ctx.saved_tensors)  # type: ignore[attr-defined]
        return for_columns, for_bias, None, for_weight, for_shift, None, None


def _forward(
    columns: Tensor, bias: Tensor, shares: Tensor, weight: Tensor, shift: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The result; what comes out of the ReLU; its means, variances and inverse deviations."""
    active = _active(columns, bias)
    mean = active @ shares
    variance = (active - mean[:, None]).square_() @ shares
    inverse = (variance + eps).rsqrt()
    return _scaled(active, mean, inverse, weight, shift), active, mean, variance, inverse


def _backward(
    grad: Tensor, active: Tensor, shares: Tensor, weight: Tensor, mean: Tensor, inverse: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients for columns, bias, weight and shift."""
    centred = active - mean[:, None]
    for_shift = grad.sum(1)
    for_weight = (grad * centred).sum(1) * inverse
    through_statistics = centred.mul_((for_weight * inverse)[:, None]).add_(for_shift[:, None]).mul_(shares)
    for_active = (grad - through_statistics).mul_((inverse * weight)[:, None])
    for_columns = torch.ops.aten.threshold_backward(for_active, active, 0)
    return for_columns, for_columns.sum(1), for_weight, for_shift


def _inference(
    columns: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, shift: Tensor, eps: float
) -> Tensor:
    return _scaled(_active(columns, bias), mean, (variance + eps).rsqrt(), weight, shift)


def _active(columns: Tensor, bias: Tensor) -> Tensor:
    return (columns + bias[:, None]).relu_()


def _scaled(active: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
    scale = inverse * weight
    return (active * scale[:, None]).add_((shift - mean * scale)[:, None])


_compiled_forward, _compiled_backward, _compiled_inference = (
    Compiled(function, dynamic=True) for function in (_forward, _backward, _inference)
)
