import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from qrl import encoders
from qrl.catalog import count_parameters
from qrl.encoders import MLP
from tests.compiler import break_compiler, needs_compiler

COMPILED = (encoders._compiled_forward, encoders._compiled_backward, encoders._compiled_inference)


def train_step(module: nn.Module, rows: Tensor, counts: Tensor | None, weights: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Output, and the gradients of a weighted sum of it with respect to rows and parameters."""
    rows = rows.clone().requires_grad_()
    out = module.train()(rows, counts)
    return out, list(torch.autograd.grad((out * weights).sum(), [rows, *module.parameters()]))


@pytest.mark.parametrize(
    ("hidden_sizes", "batch_norm", "compiled"),
    [
        ((), True, False),
        ((8, 8), False, False),
        ((16,), True, False),
        ((16, 8), True, False),
        ((8, 512), True, False),
        pytest.param((16,), True, True, marks=needs_compiler),
        pytest.param((16, 8), True, True, marks=needs_compiler),
        pytest.param((8, 512), True, True, marks=needs_compiler),
    ],
)
def test_counts_equal_repetition(
    hidden_sizes: tuple[int, ...], batch_norm: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distinct rows with counts, compared with torch's own functions on all repetitions."""
    monkeypatch.setattr(encoders, "_MIN_COMPILED", 0)
    torch.manual_seed(1)
    network, twin = (MLP(5, hidden_sizes, 4, batch_norm).double() for _ in range(2))
    if compiled:
        network.accelerate_()
    rows = torch.randn(11, 5, dtype=torch.float64)
    counts = torch.randint(1, 9, (11,))
    weights = torch.randn(int(counts.sum()), 4, dtype=torch.float64)
    twin.load_state_dict(network.state_dict())
    index = torch.arange(11).repeat_interleave(counts)
    summed = torch.zeros(11, 4, dtype=torch.float64).index_add_(0, index, weights)
    distinct, distinct_grads = train_step(network, rows, counts, summed)
    repeated, repeated_grads = train_step(twin, rows[index], None, weights)
    repeated_grads[0] = torch.zeros_like(rows).index_add_(0, index, repeated_grads[0])
    close = functools.partial(torch.testing.assert_close, rtol=0, atol=1e-10)
    close(distinct[index], repeated)
    for gradient, expected in zip(distinct_grads, repeated_grads, strict=True):
        close(gradient, expected)
    for (name, buffer), expected in zip(network.named_buffers(), twin.buffers(), strict=True):
        close(buffer, expected, msg=name)
    # Counts have no effect in eval mode.
    network.eval()
    twin.eval()
    close(network(rows, counts), twin(rows))
    with torch.no_grad():
        close(network(rows, counts), twin(rows))


def test_counts_in_single_precision() -> None:
    torch.manual_seed(2)
    network = MLP(5, (64, 64), 3)
    rows, weights = torch.randn(9, 5), torch.randn(9, 3)
    for gradient, expected in zip(
        train_step(network, rows, torch.ones(9), weights)[1], train_step(network, rows, None, weights)[1], strict=True
    ):
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-4)
    network.eval()
    with torch.no_grad():
        torch.testing.assert_close(network(rows, torch.ones(9)), network(rows))


def test_a_single_row_has_no_batch_statistics() -> None:
    """As in nn.BatchNorm1d, instead of a running variance that is NaN for good."""
    network, row, once = MLP(5, (8,), 3), torch.randn(1, 5), torch.ones(1)
    for counts in (None, once):
        with pytest.raises(ValueError, match="training"):
            network(row, counts)
    assert all(buffer.isfinite().all() for buffer in network.buffers())
    network(row, 2 * once)
    assert network.eval()(row, once).isfinite().all()


def test_norms_in_eval_mode_stay_frozen() -> None:
    """The statistics do not change, even while the rest of the network trains."""
    network = MLP(5, (8,), 3).train()
    network.norms.eval()
    rows, before = torch.randn(9, 5), [buffer.clone() for buffer in network.buffers()]
    assert network(rows, torch.ones(9)).equal(network(rows))
    assert all(buffer.equal(old) for buffer, old in zip(network.buffers(), before, strict=True))


@pytest.mark.parametrize(
    ("accelerated", "threshold", "expected"),
    [(True, 9 * 8, ["forward", "backward", "inference"]), (True, 9 * 8 + 1, []), (False, 0, [])],
)
def test_only_large_accelerated_networks_are_compiled(
    accelerated: bool, threshold: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def recorded(name: str) -> Callable[..., Any]:
        plain = getattr(encoders, f"_{name}")

        def call(*arguments: Any) -> Any:
            calls.append(name)
            return plain(*arguments)

        return call

    for name in ("forward", "backward", "inference"):
        monkeypatch.setattr(encoders, f"_compiled_{name}", recorded(name))
    monkeypatch.setattr(encoders, "_MIN_COMPILED", threshold)
    network = MLP(5, (16, 8), 3)
    if accelerated:
        network.accelerate_()
    network(torch.randn(9, 5), torch.ones(9)).sum().backward()
    with torch.no_grad():
        network.eval()(torch.randn(9, 5), torch.ones(9))
    assert calls == expected


@needs_compiler
def test_compiled_functions_serve_any_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for function in COMPILED:
        monkeypatch.setattr(function, "works", True)  # restored even if this test fails
    monkeypatch.setattr(encoders, "_MIN_COMPILED", 0)
    network = MLP(5, (32,), 3)
    network.accelerate_()

    def run(size: int) -> None:
        network.train()(torch.randn(size, 5), torch.ones(size)).sum().backward()
        with torch.no_grad():
            network.eval()(torch.randn(size, 5), torch.ones(size))

    run(9)
    with torch.compiler.set_stance("fail_on_recompile"):
        for size in (16, 17, 40):
            run(size)
    assert all(function.works for function in COMPILED)  # a failed recompilation would fall back


def test_statistics_are_updated_once_if_compiling_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    break_compiler(monkeypatch)
    for function in COMPILED:
        monkeypatch.setattr(function, "works", True)
        monkeypatch.setattr(function, "_compiled", None)
    monkeypatch.setattr(encoders, "_MIN_COMPILED", 0)
    network = MLP(5, (8,), 3)
    twin = copy.deepcopy(network)
    network.accelerate_()
    rows = torch.randn(9, 5)
    with pytest.warns(UserWarning, match="torch.compile failed"):
        network(rows, torch.ones(9)).sum().backward()
    twin(rows, torch.ones(9))
    assert all(buffer.equal(expected) for buffer, expected in zip(network.buffers(), twin.buffers(), strict=True))


@pytest.mark.parametrize("frozen", [False, True])
def test_gradients_of_counted_batches(frozen: bool) -> None:
    """Even if rows or some weights need none."""
    torch.manual_seed(3)
    network = MLP(2, (3, 4), 2).double()
    rows = torch.randn(5, 2, dtype=torch.float64, requires_grad=not frozen)
    counts = torch.tensor([1, 4, 3, 2, 3])
    names, parameters = zip(*network.named_parameters(), strict=True)
    if frozen:
        parameters[0].requires_grad_(False)

    def output(*values: Tensor) -> Any:
        return torch.func.functional_call(network, dict(zip(names, values[1:], strict=True)), (values[0], counts))

    assert torch.autograd.gradcheck(output, (rows, *parameters))


def test_a_constant_feature_has_finite_gradients() -> None:
    network = MLP(1, (2,), 2)
    with torch.no_grad():
        network.hidden[0].weight.zero_()  # type: ignore[operator]
        network.hidden[0].bias.copy_(torch.tensor([-1.0, 2.0]))  # type: ignore[operator]
        network.output.weight.copy_(torch.eye(2))
        network.output.bias.zero_()
    out = network(torch.tensor([[1.0], [2.0], [3.0]]), torch.ones(3))  # all clipped to 0; all equal
    assert out.tolist() == [[0, 0], [0, 0], [0, 0]]
    gradients = torch.autograd.grad((out * torch.randn(3, 2)).sum(), list(network.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert gradients[0][0] == gradients[1][0] == 0


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((18, (2048, 2048, 2048), 1024), 10_542_080), ((36, (2048, 2048, 2048, 256), 16), 9_009_936)],
)
def test_sizes_of_the_paper(sizes: tuple[int, tuple[int, ...], int], expected: int) -> None:
    with torch.device("meta"):
        assert count_parameters(MLP(*sizes)) == expected


def test_the_random_graph_encoder_has_no_batch_norm() -> None:
    network = MLP(64, (128, 128, 128), 48, batch_norm=False)
    assert count_parameters(network) == 47_536
    assert not list(network.buffers())


def test_order_of_the_layers_by_hand() -> None:
    """Linear, ReLU, then normalization, which is the identity in eval mode with running statistics 0 and 1."""
    network = MLP(1, (2,), 1).double().eval()
    with torch.no_grad():
        network.hidden[0].weight.copy_(torch.tensor([[1.0], [-1.0]]))  # type: ignore[operator]
        network.hidden[0].bias.zero_()  # type: ignore[operator]
        network.output.weight.copy_(torch.tensor([[1.0, 10.0]]))
        network.output.bias.fill_(0.5)
    scale = (1 + 1e-5) ** -0.5
    out = network(torch.tensor([[3.0], [-2.0]], dtype=torch.float64)).squeeze(-1).tolist()
    assert out == pytest.approx([3 * scale + 0.5, 20 * scale + 0.5])
