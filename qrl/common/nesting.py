"""Dotted keys and nested mappings: two forms of the same settings and results."""

from collections.abc import Mapping
from typing import Any

from qrl.common.config_files import merge
from qrl.common.settings import split_key


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested mappings."""
    nested: dict[str, Any] = {}
    for dotted, value in values.items():
        *parents, last = split_key(str(dotted))
        inner: Any = nest(value) if isinstance(value, Mapping) else value
        for key in (last, *reversed(parents)):
            inner = {key: inner}
        nested = merge(nested, inner)
    return nested
