"""Every head inside torch.compile, as part of a user's own model: no graph breaks, the same values and gradients."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from qrl.heads import IQE, Head
from qrl.heads import interval_union as unions
from qrl.heads.interval_union import interval_union
from qrl.heads.poisson_race import _race
from tests.compiler import needs_compiler
from tests.heads import HEAD_NAMES, INPUT_SIZE, make_head, randn

Distance = Callable[[Tensor, Tensor], Tensor]


class OwnModel(nn.Module):
    def __init__(self, head: Head) -> None:
        super().__init__()
        self.encoder = nn.Linear(5, head.input_size, dtype=torch.float64)
        self.head = head

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        distances: Tensor = self.head(self.encoder(x), self.encoder(y))
        return distances


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def kernel_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of the fast kernels of IQE, which here are not compiled themselves."""
    calls: list[str] = []
    for name, function in (("length", unions._compared_length), ("ends", unions._compared_ends)):

        def call(*arguments: Tensor, name: str = name, function: Callable[..., Any] = function) -> Any:
            calls.append(name)
            return function(*arguments)

        monkeypatch.setattr(unions, f"_compiled_{name}", call)
        monkeypatch.setattr(unions, f"_flat_{name}", call)
    return calls


def assert_equal_to_eager(model: nn.Module, compiled: Distance, *shapes: tuple[tuple[int, ...], ...]) -> None:
    parameters = list(model.parameters())
    for shape_x, shape_y in shapes:
        x, y = randn(*shape_x), randn(*shape_y, seed=1)
        expected, measured = model(x, y), compiled(x, y)
        torch.testing.assert_close(measured, expected)
        gradients = [torch.autograd.grad(d.square().sum(), parameters) for d in (expected, measured)]
        torch.testing.assert_close(gradients[1], gradients[0])
        with torch.no_grad():
            torch.testing.assert_close(compiled(x, y), expected)


@pytest.mark.usefixtures("kernel_calls")
@pytest.mark.parametrize("name", HEAD_NAMES)
def test_no_graph_breaks_and_equal_to_eager(name: str) -> None:
    model = OwnModel(make_head(name))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    # The second size makes the batch dimension dynamic.
    assert_equal_to_eager(model, compiled, ((4, 5), (4, 5)), ((6, 5), (6, 5)))


def test_iqe_reaches_its_kernels(kernel_calls: list[str]) -> None:
    model = OwnModel(make_head("iqe-maxmean"))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    assert_equal_to_eager(model, compiled, ((7, 5), (7, 5)), ((7, 1, 5), (1, 3, 5)), ((5,), (3, 5)))
    assert kernel_calls == ["ends", "length"] * 3


def test_gradients_of_compiled_iqe(kernel_calls: list[str]) -> None:
    head = torch.compile(IQE(INPUT_SIZE).double(), fullgraph=True, backend="aot_eager")
    u, v = randn(3, INPUT_SIZE).requires_grad_(), randn(3, INPUT_SIZE, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(head, (u, v))
    assert set(kernel_calls) == {"ends"}


def test_many_intervals_are_sorted_inside_torch_compile(kernel_calls: list[str]) -> None:
    u, v = randn(3, 65), randn(3, 65, seed=1)
    compiled = torch.compile(interval_union, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(u, v), interval_union(u, v))
    assert not kernel_calls


@pytest.mark.usefixtures("kernel_calls")
@pytest.mark.parametrize("operator", [unions._length_operator, unions._ends_operator])
@pytest.mark.parametrize(("u_shape", "v_shape"), [((6, 3, 4), (6, 3, 4)), ((6, 1, 3, 4), (1, 5, 3, 4)), ((4,), (3, 4))])
def test_operators_are_described_to_the_compiler(
    operator: Any, u_shape: tuple[int, ...], v_shape: tuple[int, ...]
) -> None:
    u, v = randn(*u_shape), randn(*v_shape, seed=1)
    torch.library.opcheck(operator, (u, v))
    # The same of latents whose dimensions are stored in another order.
    torch.library.opcheck(operator, tuple(x.movedim(0, -1).contiguous().movedim(-1, 0) for x in (u, v)))


@pytest.mark.parametrize("method", ["scipy", "quadrature"])
def test_the_poisson_race_is_described_to_the_compiler(method: str) -> None:
    rates = randn(6, 4).square()
    torch.library.opcheck(_race, (rates, randn(4, 6, seed=1).square().T, method))


@needs_compiler
def test_compiled_for_real() -> None:
    """The default backend, for two sizes of batches and without gradients."""
    model = OwnModel(IQE(8, dim_per_component=4).double())
    compiled = torch.compile(model, fullgraph=True)
    assert_equal_to_eager(model, compiled, ((6, 5), (6, 5)), ((9, 5), (9, 5)))
