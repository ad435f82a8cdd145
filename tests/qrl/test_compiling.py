import pytest
import torch

from qrl.compiling import Compiled
from tests.compiler import break_compiler, needs_compiler


def test_where_compiling_fails_the_plain_form_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    break_compiler(monkeypatch)
    call = Compiled(torch.sub, torch.add, dynamic=True)
    x, y = torch.randn(4), torch.randn(4)
    with pytest.warns(UserWarning, match=r"torch\.compile failed.*no Python\.h"):
        first = call(x, y)
    assert torch.equal(first, x + y)
    assert torch.equal(call(x, y), first)  # and says so once


def test_without_another_plain_form_the_function_itself_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    break_compiler(monkeypatch)
    with pytest.warns(UserWarning, match="torch.compile failed"):
        assert Compiled(torch.neg, dynamic=True)(torch.ones(2)).tolist() == [-1, -1]


@needs_compiler
def test_the_compiler_does_not_look_for_gradients() -> None:
    """Neither in leaves nor in what is made of them, where torch would warn (and warnings are errors here)."""
    leaf = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert Compiled(torch.neg, dynamic=True)(leaf).tolist() == [-1, -1, -1]
    assert not Compiled(torch.neg, dynamic=True)(leaf * 2).requires_grad
