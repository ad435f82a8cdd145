"""Results side by side: rows of text for a terminal, Markdown or HTML."""

from collections.abc import Callable, Sequence

from qrl.agents.evaluation.results import CAUSES, Errors, Planning, Results

Show = Callable[[Results], str]


def summary(results: Sequence[Results]) -> list[tuple[str, list[str]]]:
    """A title and a value for each of the `results`, row by row; rows without any value are left out."""
    rows = [(title, [show(each) for each in results]) for title, show in _ROWS]
    return [(title, values) for title, values in rows if not set(values) <= {"-", "0"}]


def by_distance(results: Results) -> list[tuple[str, list[str]]]:
    """Rows of planning and errors by true distance, with a row of titles first; none where the truth is not known."""
    planned = {(bucket.low, bucket.high): bucket for bucket in results.success_by_distance}
    errors = (
        {(bucket.low, bucket.high): bucket for bucket in results.distances.by_distance} if results.distances else {}
    )
    rows = []
    for low, high in sorted({*planned, *errors}):
        tasks, error = planned.get((low, high)), errors.get((low, high))
        values = [
            f"{tasks.tasks:,}" if tasks else "-",
            _number(tasks.success_rate if tasks else None),
            _number(error.signed_error if error else None, 2),
            _number(error.absolute_error if error else None, 2),
        ]
        rows.append((f"  {low}-{high}", values))
    titles = ["tasks", "success rate", "estimate - truth", "|estimate - truth|"]
    return [(f"{results.name}, by true distance", titles), *rows] if rows else []


def text_table(results: Sequence[Results]) -> str:
    return align([("", [each.name for each in results]), *summary(results)])


def align(rows: Sequence[tuple[str, list[str]]]) -> str:
    """Rows as lines of text: titles to the left, values to the right of their columns."""
    left = max(len(title) for title, _ in rows)
    widths = [max(len(value) for value in column) for column in zip(*(values for _, values in rows), strict=True)]
    lines = []
    for title, values in rows:
        cells = (value.rjust(width) for value, width in zip(values, widths, strict=True))
        lines.append("  ".join([title.ljust(left), *cells]).rstrip())
    return "\n".join(lines)


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _success(planning: Planning | None) -> str:
    if planning is None or planning.success_rate is None:
        return "-"
    interval = planning.success_interval
    return f"{planning.success_rate:.3f}" + (f" ({interval[0]:.2f}-{interval[1]:.2f})" if interval else "")


def _failures(cause: str) -> Show:
    return lambda each: "-" if each.success_rate is None else f"{each.failures.get(cause, 0):,}"


def _errors(group: str, key: str, digits: int = 2) -> Show:
    def show(each: Results) -> str:
        if each.distances is None:
            return "-"
        errors: Errors = getattr(each.distances, group)
        return _number(getattr(errors, key), digits)

    return show


def _axiom(key: str, digits: int) -> Show:
    return lambda each: "-" if each.axioms is None else _number(getattr(each.axioms, key), digits)


_ROWS: list[tuple[str, Show]] = [
    ("success rate", _success),
    ("SPL", lambda each: _number(each.spl)),
    ("excess steps of successes", lambda each: _number(each.excess_steps, 2)),
    ("tasks", lambda each: f"{each.tasks:,}" if each.tasks else "-"),
    *((f"  failed: {cause}", _failures(cause)) for cause in CAUSES),
    ("unreachable tasks (left out)", lambda each: f"{each.unreachable_tasks:,}" if each.unreachable_tasks else "-"),
    ("success rate, all pairs of states", lambda each: _success(each.all_pairs)),
    ("steps to the goal, estimate - truth", _errors("reachable", "signed_error")),
    ("  |estimate - truth|", _errors("reachable", "absolute_error")),
    ("    pairs seen in a trajectory", _errors("seen", "absolute_error")),
    ("    pairs unseen", _errors("unseen", "absolute_error")),
    ("  rank correlation (Spearman)", _errors("reachable", "spearman", 3)),
    ("  under-estimated by more than 1", _errors("reachable", "underestimated", 3)),
    ("  share with an estimate", _errors("reachable", "known", 3)),
    ("  goals without a way: mean estimate", _errors("unreachable", "mean_estimate", 1)),
    ("    longer than every true distance", _errors("unreachable", "beyond", 3)),
    ("triangle violations", _axiom("triangle_violations", 4)),
    ("  largest excess", _axiom("triangle_excess", 2)),
    ("identity error", _axiom("identity_error", 3)),
    ("asymmetry, learned", _axiom("asymmetry", 2)),
    ("asymmetry, true", _axiom("true_asymmetry", 2)),
]
