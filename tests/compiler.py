"""Helpers for tests of compiled functions."""

import pytest
import torch

from qrl.compiling import has_compiler

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="torch.compile needs a C++ compiler")


def break_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        def call(*_: object) -> None:
            raise RuntimeError("no Python.h")

        return call

    monkeypatch.setattr(torch, "compile", broken)
