from configparser import ConfigParser
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement

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


def test_every_allowed_torch_has_the_recompile_limit() -> None:
    """Until torch 2.6 it was called cache_size_limit: setting it failed, as if there were no compiler."""
    config = ConfigParser()
    config.read(Path(__file__).parents[2] / "setup.cfg")
    requirements = map(Requirement, config["options"]["install_requires"].split())
    (torch_versions,) = (requirement.specifier for requirement in requirements if requirement.name == "torch")
    assert not torch_versions.contains("2.6.0")
