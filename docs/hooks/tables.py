"""Tables of Markdown, and the keys of settings as one."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from qrl.common.settings import Settings

_NAMES = {int: "integer", float: "number", str: "text", bool: "true, false"}


def keys_table(settings: type[Settings], prefix: str = "", without: Sequence[str] = ()) -> str:
    fields = {key: field for key, field in settings.leaves().items() if key not in without}
    rows = [
        (f"`{prefix}{key}`", escape(field.description or ""), _allowed(field), _default(field))
        for key, field in fields.items()
    ]
    return table(("key", "meaning", "values", "default"), rows)


def _allowed(field: FieldInfo) -> str:
    """The type of a field and its range."""
    annotation = field.annotation
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(annotation))
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not type(None)]
    kinds = [get_args(kind)[0] if get_origin(kind) is Annotated else kind for kind in kinds]
    text = _NAMES.get(kinds[0], "") if len(kinds) == 1 else ""
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    limits = [
        f"{sign} {getattr(rule, name):,}"
        for rule in field.metadata
        for name, sign in signs.items()
        if abs(getattr(rule, name, math.inf)) < 2**31
    ]
    return escape(" ".join(filter(None, [text, ", ".join(limits)])))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or isinstance(value, BaseModel) else f"`{value}`"


def as_markdown(docstring: str) -> str:
    """A docstring as Markdown: formulas in plain text keep their signs."""
    parts = re.split(r"(^(?: {4}.*\n?)+)", docstring, flags=re.MULTILINE)
    return "".join(part if index % 2 else escape(part) for index, part in enumerate(parts))


def escape(text: str) -> str:
    """Plain text in Markdown: signs that would be markup are not; code stays code."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if index % 2 else _escape(part) for index, part in enumerate(parts))


def _escape(text: str) -> str:
    return re.sub(r"([*_|$\[\]])", r"\\\1", text).replace("<", "&lt;").replace(">", "&gt;")


def table(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
