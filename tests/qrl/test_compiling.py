import pytest
import torch

from qrl.compiling import Compiled
from tests.compiler import break_compiler, needs_compiler


def test_a_failed_compilation_falls_back_to_the_plain_function(monkeypatch: pytest.MonkeyPatch) -> None:
    break_compiler(monkeypatch)
    call = Compiled(torch.sub, torch.add, dynamic=True)
    x, y = torch.randn(4), torch.randn(4)
    with pytest.warns(UserWarning, match=r"torch\.compile failed.*no Python\.h"):
        first = call(x, y)
    assert torch.equal(first, x + y)
    assert torch.equal(call(x, y), first)  # without another warning


def test_the_plain_function_defaults_to_the_function_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    break_compiler(monkeypatch)
    with pytest.warns(UserWarning, match="torch.compile failed"):
        assert Compiled(torch.neg, dynamic=True)(torch.ones(2)).tolist() == [-1, -1]


@needs_compiler
def test_arguments_are_detached() -> None:
    """Otherwise torch warns about the gradient of non-leaf tensors, and warnings are errors here."""
    leaf = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert Compiled(torch.neg, dynamic=True)(leaf).tolist() == [-1, -1, -1]
    assert not Compiled(torch.neg, dynamic=True)(leaf * 2).requires_grad
