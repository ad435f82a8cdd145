"""Text for terminals."""

from collections.abc import Sequence


def plain_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in aligned columns; the first one is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
