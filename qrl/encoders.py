"""Encoders: multilayer perceptrons whose batch statistics can count rows."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F


class _WeightedNorm(torch.autograd.Function):
    """Columns of mean 0 and variance 1 under weights of the rows: by hand, for half the passes over memory."""

    @staticmethod
    def forward(ctx: FunctionCtx, rows: Tensor, shares: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        mean = shares @ rows
        normed = rows - mean
        variance = shares @ normed.square()
        scale = (variance + eps).rsqrt()
        normed.mul_(scale)
        ctx.save_for_backward(normed, scale, shares)
        ctx.mark_non_differentiable(mean, variance)
        return normed, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor, *_: Tensor) -> tuple[Tensor, None, None]:
        normed, scale, shares = ctx.saved_tensors  # type: ignore[attr-defined]
        along = (grad * normed).sum(0)
        mean_part = torch.addcmul(grad.sum(0), normed, along).mul_(shares[:, None])
        return (grad - mean_part).mul_(scale), None, None


class CountedBatchNorm(nn.BatchNorm1d):
    """Batch normalisation in which a row may stand for several.

    With `counts`, the statistics of a training batch are those of every row repeated so often; encoding each distinct
    row once then equals encoding all repetitions: values, gradients and running statistics.
    """

    def forward(self, rows: Tensor, counts: Tensor | None = None) -> Tensor:
        if counts is None or not self.training:
            return super().forward(rows)
        total = counts.sum().to(rows.dtype)
        normed, mean, variance = _WeightedNorm.apply(rows, counts.to(rows.dtype) / total, self.eps)  # type: ignore[no-untyped-call]
        self._track(mean, variance * (total / (total - 1)))  # running variances are unbiased
        return torch.addcmul(self.bias, normed, self.weight)

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)
        self.num_batches_tracked += 1


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
        for index, layer in enumerate(self.hidden):
            rows = F.relu(layer(rows))
            if self.norms:
                rows = self.norms[index](rows, counts)
        return self.output(rows)
