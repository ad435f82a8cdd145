import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from qrl import encoders
from qrl.encoders import MLP, CountedBatchNorm, _Counted
from tests.marks import needs_compiler


def accelerate(network: MLP) -> None:
    for norm in network.norms:
        assert isinstance(norm, CountedBatchNorm)
        norm.accelerate_()


def train_step(module: nn.Module, rows: Tensor, counts: Tensor | None, weights: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Output, and the gradients of a weighted sum of it with respect to rows and parameters."""
    rows = rows.clone().requires_grad_()
    out = module.train()(rows, counts)
    return out, list(torch.autograd.grad((out * weights).sum(), [rows, *module.parameters()]))


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_compiler)])
@pytest.mark.parametrize(("hidden_sizes", "batch_norm"), [((), True), ((16,), True), ((16, 8), True), ((8, 8), False)])
def test_counts_equal_repetition(
    hidden_sizes: tuple[int, ...], batch_norm: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distinct rows with counts, against torch's own functions for every repetition."""
    monkeypatch.setattr("qrl.encoders._MIN_COMPILED", 0)
    torch.manual_seed(1)
    network, twin = (MLP(5, hidden_sizes, 4, batch_norm).double() for _ in range(2))
    if compiled:
        accelerate(network)
    rows = torch.randn(11, 5, dtype=torch.float64)
    counts = torch.randint(1, 9, (11,))
    weights = torch.randn(int(counts.sum()), 4, dtype=torch.float64)
    twin.load_state_dict(network.state_dict())
    index = torch.arange(11).repeat_interleave(counts)
    summed = torch.zeros(11, 4, dtype=torch.float64).index_add_(0, index, weights)
    few, few_grads = train_step(network, rows, counts, summed)
    many, many_grads = train_step(twin, rows[index], None, weights)
    many_grads[0] = torch.zeros_like(rows).index_add_(0, index, many_grads[0])
    close = functools.partial(torch.testing.assert_close, rtol=0, atol=1e-10)
    close(few[index], many)
    for mine, theirs in zip(few_grads, many_grads, strict=True):
        close(mine, theirs)
    for (name, mine), theirs in zip(network.named_buffers(), twin.buffers(), strict=True):
        close(mine, theirs, msg=name)
    # In eval mode counts change nothing.
    network.eval()
    twin.eval()
    close(network(rows, counts), twin(rows))
    with torch.no_grad():
        close(network(rows, counts), twin(rows))


def test_features_first_equals_torchs_own_in_single_precision() -> None:
    torch.manual_seed(2)
    network = MLP(5, (64, 64), 3).eval()
    rows = torch.randn(8, 5)
    torch.testing.assert_close(network(rows, torch.ones(8)), network(rows))


@pytest.mark.parametrize(("least", "expected"), [(64 * 16, ["forward", "backward", "inference"]), (64 * 16 + 1, [])])
def test_only_large_layers_are_compiled(least: int, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def recorded(name: str) -> Callable[..., Any]:
        plain = getattr(encoders, f"_{name}")

        def call(*arguments: Any) -> Any:
            calls.append(name)
            return plain(*arguments)

        return call

    for name in ("forward", "backward", "inference"):
        monkeypatch.setattr(encoders, f"_compiled_{name}", recorded(name))
    monkeypatch.setattr(encoders, "_MIN_COMPILED", least)
    network = MLP(5, (64,), 3)
    accelerate(network)
    network(torch.randn(9, 5), torch.ones(9)).sum().backward()  # 9 rows are padded to 16
    with torch.no_grad():
        network.eval()(torch.randn(9, 5), torch.ones(9))
    assert calls == expected


def test_gradients_of_counted_batches() -> None:
    torch.manual_seed(3)
    shares = torch.tensor([0.1, 0.4, 0.0, 0.2, 0.3], dtype=torch.float64)
    columns, bias, weight, shift = (
        torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 5), (3,), (3,), (3,))
    )
    assert torch.autograd.gradcheck(
        lambda *inputs: _Counted.apply(*inputs[:2], shares, *inputs[2:], 1e-5, False)[0],  # type: ignore[no-untyped-call]
        (columns, bias, weight, shift),
    )


def test_a_feature_without_spread_is_harmless() -> None:
    norm = CountedBatchNorm(2)
    columns = torch.tensor([[-1.0, -2.0, -3.0], [2.0, 2.0, 2.0]], requires_grad=True)  # all cut off; all the same
    out = norm.activate(columns, torch.zeros(2), torch.ones(3))
    assert out.tolist() == [[0, 0, 0], [0, 0, 0]]
    (grad,) = torch.autograd.grad((out * torch.randn(2, 3)).sum(), columns)
    assert grad[0].tolist() == [0, 0, 0]
    assert grad.isfinite().all()


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
