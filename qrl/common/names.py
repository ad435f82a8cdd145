"""Suggestions for misspelt names."""

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A message for an unknown `name`: the nearest known one, if any is near, and all known ones."""
    choices = sorted(known)
    nearest = difflib.get_close_matches(name, choices, n=1)
    suggestion = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    return f"unknown {kind} {name!r}{suggestion}; known: {', '.join(choices) or 'none'}"
