import functools

import pytest
import torch
from torch import Tensor, nn

from qrl.encoders import MLP, CountedBatchNorm


def train_step(module: nn.Module, rows: Tensor, counts: Tensor | None, weights: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Output, and the gradients of a weighted sum of it with respect to rows and parameters."""
    rows = rows.clone().requires_grad_()
    out = module.train()(rows, counts)
    return out, list(torch.autograd.grad((out * weights).sum(), [rows, *module.parameters()]))


def assert_counts_equal_repetition(module: nn.Module, twin: nn.Module) -> None:
    rows = torch.randn(11, 5, dtype=torch.float64)
    counts = torch.randint(1, 9, (11,))
    weights = torch.randn(int(counts.sum()), module(rows).shape[-1], dtype=torch.float64)
    twin.load_state_dict(module.state_dict())
    index = torch.arange(11).repeat_interleave(counts)
    summed = torch.zeros(11, weights.shape[1], dtype=torch.float64).index_add_(0, index, weights)
    few, few_grads = train_step(module, rows, counts, summed)
    many, many_grads = train_step(twin, rows[index], None, weights)
    many_grads[0] = torch.zeros_like(rows).index_add_(0, index, many_grads[0])
    close = functools.partial(torch.testing.assert_close, rtol=0, atol=1e-10)
    close(few[index], many)
    for mine, theirs in zip(few_grads, many_grads, strict=True):
        close(mine, theirs)
    for (name, mine), theirs in zip(module.named_buffers(), twin.buffers(), strict=True):
        close(mine, theirs, msg=name)


def test_counts_equal_repetition_in_one_layer() -> None:
    torch.manual_seed(0)
    assert_counts_equal_repetition(CountedBatchNorm(5).double(), CountedBatchNorm(5).double())


def test_counts_equal_repetition_in_a_network() -> None:
    torch.manual_seed(1)
    assert_counts_equal_repetition(*(MLP(5, (16, 16, 16), 4).double() for _ in range(2)))


def test_without_counts_it_is_torchs_batch_norm() -> None:
    torch.manual_seed(2)
    mine, theirs = CountedBatchNorm(5), nn.BatchNorm1d(5)
    rows = torch.randn(8, 5)
    torch.testing.assert_close(mine(rows), theirs(rows))
    torch.testing.assert_close(mine(rows, torch.ones(8)), theirs(rows))
    for (name, buffer), other in zip(mine.named_buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(buffer, other, msg=name)
    mine.eval()
    theirs.eval()
    torch.testing.assert_close(mine(rows, torch.arange(8)), theirs(rows))  # in eval mode counts change nothing


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((18, (2048, 2048, 2048), 1024), 10_542_080), ((36, (2048, 2048, 2048, 256), 16), 9_009_936)],
)
def test_the_papers_sizes(sizes: tuple[int, tuple[int, ...], int], expected: int) -> None:
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in MLP(*sizes).parameters()) == expected


def test_the_random_graph_encoder_has_no_batch_norm() -> None:
    network = MLP(64, (128, 128, 128), 48, batch_norm=False)
    assert sum(parameter.numel() for parameter in network.parameters()) == 47_536
    assert not list(network.buffers())


def test_order_of_the_layers_by_hand() -> None:
    """Linear, ReLU, then normalisation: with running statistics 0 and 1, in eval mode, the identity."""
    network = MLP(1, (2,), 1).double().eval()
    with torch.no_grad():
        network.hidden[0].weight.copy_(torch.tensor([[1.0], [-1.0]]))  # type: ignore[operator]
        network.hidden[0].bias.zero_()  # type: ignore[operator]
        network.output.weight.copy_(torch.tensor([[1.0, 10.0]]))
        network.output.bias.fill_(0.5)
    scale = (1 + 1e-5) ** -0.5
    out = network(torch.tensor([[3.0], [-2.0]], dtype=torch.float64)).squeeze(-1).tolist()
    assert out == pytest.approx([3 * scale + 0.5, 20 * scale + 0.5])
