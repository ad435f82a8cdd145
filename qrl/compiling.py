"""torch.compile where it works, and the plain form where it does not."""

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
    """`function`, compiled at its first call; where that fails, as without the headers that it needs, `plain`.

    Gradients do not pass it: whoever calls it has them by hand. A function may change its arguments, because what fails
    does so before it runs.
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
        self.dynamic = dynamic  # one kernel for all shapes, or one for each
        self.options = options
        self.works = True
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        # Detached, because the compiler looks at .grad, and warns where there can be none.
        arguments = tuple(each.detach() if isinstance(each, Tensor) else each for each in arguments)
        if self.works:
            try:
                if self._compiled is None:
                    self._compiled = torch.compile(self.function, dynamic=self.dynamic, options=self.options)
                    # By default the ninth shape would run uncompiled, and without a word.
                    torch._dynamo.config.recompile_limit = max(_MAX_SHAPES, torch._dynamo.config.recompile_limit)
                return self._compiled(*arguments)
            except Exception as error:  # whatever the compiler or its cache runs into
                self.works = False
                warnings.warn(f"torch.compile failed, so the plain form is used: {error}", stacklevel=2)
        return self.plain(*arguments)
