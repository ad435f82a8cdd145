"""Results side by side: rows of text for a terminal, Markdown or HTML."""

from collections.abc import Sequence

from qrl.agents.evaluation.metrics import METRICS, Metric, Value
from qrl.agents.evaluation.results import Results, Row

TextRow = tuple[str, list[str]]  # a title and a value per column


def results_rows(results: Sequence[Results]) -> list[TextRow]:
    """A row per metric with a title and a column per result; rows without any value are left out."""
    rows = [(metric.title, [_show(metric, result) for result in results]) for metric in METRICS if metric.title]
    return [(title, values) for title, values in rows if not set(values) <= {"-", "0"}]


def _show(metric: Metric, result: Results) -> str:
    text = _number(result.values.get(metric.key), metric.digits)
    if metric.key == "success_rate" and result.success_interval is not None:
        low, high = result.success_interval
        text += f" ({low:.2f}-{high:.2f})"
    return text


def _number(value: Value, digits: int = 3) -> str:
    return "-" if value is None else f"{value:,.{digits}f}" if digits == 0 else f"{value:.{digits}f}"


def rows_by_distance(result: Results) -> list[TextRow]:
    """Planning and errors by exact distance, with a row of titles first; empty without exact distances."""
    planned = {(row["low"], row["high"]): row for row in result.success_by_distance}
    errors = {(row["low"], row["high"]): row for row in result.errors_by_distance}
    rows: list[TextRow] = []
    for low, high in sorted({*planned, *errors}, key=lambda ends: ends[0] or 0):
        tasks: Row = planned.get((low, high), {})
        error: Row = errors.get((low, high), {})
        values = [
            _number(tasks.get("tasks"), 0),
            _number(tasks.get("success_rate")),
            _number(error.get("signed_error"), 2),
            _number(error.get("absolute_error"), 2),
        ]
        rows.append((f"  {low}-{high}", values))
    titles = ["tasks", "success rate", "estimate - exact", "|estimate - exact|"]
    return [(f"{result.name}, by exact distance", titles), *rows] if rows else []


def text_table(results: Sequence[Results]) -> str:
    return align([("", [result.name for result in results]), *results_rows(results)])


def align(rows: Sequence[TextRow]) -> str:
    """Rows as lines of text: titles flush left, values flush right in their columns."""
    left = max(len(title) for title, _ in rows)
    widths = [max(len(value) for value in column) for column in zip(*(values for _, values in rows), strict=True)]
    lines = []
    for title, values in rows:
        cells = (value.rjust(width) for value, width in zip(values, widths, strict=True))
        lines.append("  ".join([title.ljust(left), *cells]).rstrip())
    return "\n".join(lines)
