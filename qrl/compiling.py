"""torch.compile with a fallback to the plain function."""

import shutil
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_MAX_SHAPES = 256


def has_compiler() -> bool:
    """Whether this machine has a C++ compiler, which torch.compile needs."""
    return any(shutil.which(name) for name in ("g++", "clang++", "c++"))


class Compiled:
    """`function`, compiled at its first call; falls back to `plain` if that fails, for example without Python headers.

    Not differentiable; callers supply the gradient. The function may modify its arguments: compilation fails, if at
    all, before it runs.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        plain: Callable[..., Any] | None = None,
        *,
        dynamic: bool,
        **options: Any,
    ) -> None:
        self.function = function
        self.plain = plain or function
        self.dynamic = dynamic  # one kernel for all shapes, or one per shape
        self.options = options
        self.works = True
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        # Detached, because the compiler accesses .grad, which warns for non-leaf tensors.
        arguments = tuple(value.detach() if isinstance(value, Tensor) else value for value in arguments)
        if self.works:
            try:
                if self._compiled is None:
                    self._compiled = torch.compile(self.function, dynamic=self.dynamic, options=self.options)
                    # By default the ninth shape would silently run uncompiled.
                    torch._dynamo.config.recompile_limit = max(_MAX_SHAPES, torch._dynamo.config.recompile_limit)
                return self._compiled(*arguments)
            except Exception as error:  # the compiler and its cache may fail in many ways
                self.works = False
                warnings.warn(f"torch.compile failed, falling back to the plain function: {error}", stacklevel=2)
        return self.plain(*arguments)
