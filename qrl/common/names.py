"""Suggestions for misspelled names."""

import difflib
from collections.abc import Iterable

from qrl.common.text import MAX_SHOWN, listed, shown


def nearest_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name spelled most like `name`, ignoring case and the kind of dashes, if any is similar."""
    if len(name) > MAX_SHOWN:  # the comparison takes quadratic time
        return None
    spellings = {_normal(choice): choice for choice in sorted(known)}
    nearest = difflib.get_close_matches(_normal(name), spellings, n=1, cutoff=cutoff)
    return spellings[nearest[0]] if nearest else None


def _normal(name: str) -> str:
    return name.lower().replace("_", "-")


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A message for an unknown `name`: the most similar known one, if any, and all known ones."""
    choices = sorted(known)
    return unknown_message(kind, name, nearest_name(name, choices), choices)


def unknown_message(kind: str, name: str, nearest: str | None, known: Iterable[str], where: str = "") -> str:
    suggestion = f" (did you mean {nearest!r}?)" if nearest else ""
    return f"unknown {kind} {shown(name)}{suggestion}; known{where}: {listed(known, 100, ', ') or 'none'}"
