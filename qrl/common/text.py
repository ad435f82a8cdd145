"""Text for terminals and error messages."""

import reprlib
from collections.abc import Iterable, Sequence

MAX_SHOWN = 200  # characters of a bad value in an error message
MAX_LISTED = 5  # problems in an error message


def plain_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in aligned columns; the first one is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


class _Shown(reprlib.Repr):
    """A repr whose cost is bounded too: large and deep collections are cut, and no huge integer is converted."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 20
        self.maxstring = self.maxother = MAX_SHOWN

    def repr_int(self, value: int, level: int) -> str:
        bits = value.bit_length()
        return repr(value) if bits < 4 * MAX_SHOWN else f"an integer of {bits:,} bits"


_shown = _Shown()


def shown(value: object) -> str:
    """The repr of a value for an error message, cut to about `MAX_SHOWN` characters."""
    return clip(_shown.repr(value))


def clip(text: object, limit: int = MAX_SHOWN) -> str:
    """Text, such as a path, cut to about `limit` characters."""
    whole = str(text)
    return whole if len(whole) <= limit else f"{whole[:limit]}..."


def listed(items: Iterable[str], limit: int = MAX_LISTED, separator: str = "; ") -> str:
    """The first `limit` items, and how many more there are."""
    every = list(items)
    more = [f"and {len(every) - limit:,} more"] if len(every) > limit else []
    return separator.join([*every[:limit], *more])
