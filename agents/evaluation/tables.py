"""Results side by side: rows of text for a terminal, Markdown or HTML."""

from collections.abc import Sequence

from qrl.agents.evaluation.metric import Metric, Value
from qrl.agents.evaluation.metrics import ERRORS, METRICS, TASKS
from qrl.agents.evaluation.results import REFERENCES, Results

TextRow = tuple[str, list[str]]  # a title and a value per column


def metric_rows(results: Sequence[Results]) -> list[tuple[Metric, list[str]]]:
    """Every metric that has a title and a value, with a text per result."""
    rows = [(metric, [_show(metric, result) for result in results]) for metric in METRICS if metric.title]
    return [(metric, values) for metric, values in rows if not set(values) <= {"-", "0"}]


def results_rows(results: Sequence[Results]) -> list[TextRow]:
    """A row per metric with a title and a column per result; rows without any value are left out."""
    return [(metric.title, values) for metric, values in metric_rows(results)]


def _show(metric: Metric, result: Results) -> str:
    text = show_number(result.values.get(metric.key), metric.digits)
    if metric.key == "success_rate" and result.success_interval is not None:
        low, high = result.success_interval
        text += f" ({low:.2f}-{high:.2f})"
    return text


def show_number(value: Value, digits: int = 3) -> str:
    return "-" if value is None else f"{value:,.{digits}f}" if digits == 0 else f"{value:.{digits}f}"


def rows_by_distance(result: Results) -> list[TextRow]:
    """Planning and errors by exact distance, with a row of titles first; empty without exact distances."""
    columns = [  # a metric and its values by range
        (metric, {(row["low"], row["high"]): row[metric.key] for row in rows})
        for metrics, rows in ((TASKS, result.success_by_distance), (ERRORS, result.errors_by_distance))
        for metric in sorted(metrics, key=lambda metric: metric.digits != 0)  # counts first
        if metric.by_distance
    ]
    ranges = sorted({ends for _, values in columns for ends in values}, key=lambda ends: ends[0] or 0)
    body: list[TextRow] = [
        (f"  {low}-{high}", [show_number(values.get((low, high)), metric.digits) for metric, values in columns])
        for low, high in ranges
    ]
    titles = [metric.title for metric, _ in columns]
    return [(f"{result.name}, by exact distance", titles), *body] if body else []


def references_among(results: Sequence[Results]) -> dict[str, str]:
    """What each of the references does, by name."""
    return {result.name: REFERENCES[result.name] for result in results if result.name in REFERENCES}


def text_table(results: Sequence[Results]) -> str:
    """The results, and below them what the references do."""
    table = align([("", [result.name for result in results]), *results_rows(results)])
    references = references_among(results)
    width = max(map(len, references), default=0)
    meanings = "\n".join(f"{name:<{width}}  {meaning}" for name, meaning in references.items())
    return "\n\n".join(filter(None, (table, meanings)))


def results_text(results: Sequence[Results]) -> str:
    """The table of results and, for the first of them, that by exact distance."""
    by_distance = rows_by_distance(results[0])
    return "\n\n".join([text_table(results), *([align(by_distance)] if by_distance else [])])


def align(rows: Sequence[TextRow]) -> str:
    """Rows as lines of text: titles flush left, values flush right in their columns."""
    left = max(len(title) for title, _ in rows)
    widths = [max(len(value) for value in column) for column in zip(*(values for _, values in rows), strict=True)]
    lines = []
    for title, values in rows:
        cells = (value.rjust(width) for value, width in zip(values, widths, strict=True))
        lines.append("  ".join([title.ljust(left), *cells]).rstrip())
    return "\n".join(lines)
