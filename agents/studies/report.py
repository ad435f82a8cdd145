"""The report of a study: tables as CSV and Markdown, and the figure."""

import csv
import io
from pathlib import Path

from agents.results import REFERENCES
from agents.studies.findings import SUBJECT, Cell, Decision, Findings
from agents.studies.pictures import study_picture
from agents.studies.statistics import Interval
from agents.studies.table import Row
from qrl.common.files import atomic_write

FILES = ("report.md", "summary.csv", "success.png")


def write_report(findings: Findings, folder: Path) -> list[Path]:
    """Write `FILES` into the folder."""
    text, table, picture = (folder / name for name in FILES)
    cells = findings.cells()
    study_picture(findings, cells, picture)
    with atomic_write(table) as file:
        file.write(_csv(cells).encode())
    with atomic_write(text) as file:
        file.write(markdown(findings, cells, picture.name).encode())
    return [text, table, picture]


def _csv(cells: list[Cell]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(Cell.model_fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(cell.model_dump() for cell in cells)
    return text.getvalue()


def markdown(findings: Findings, cells: list[Cell], picture: str) -> str:
    parts = [f"# Study {findings.study.name}", progress(findings), f"![success rates]({picture})"]
    for size in findings.sizes:
        parts += [f"## {size:,} trajectories", size_table([cell for cell in cells if cell.trajectories == size])]
    comparisons = comparisons_table(findings)
    if comparisons:
        parts += [f"## How often {SUBJECT} is better", comparisons]
    decisions = findings.decisions()
    if decisions:
        parts += ["## Claims", claims_table(decisions)]
    return "\n\n".join(parts) + "\n"


def progress(findings: Findings) -> str:
    settings = findings.study.settings
    runs = [row for row in findings.rows if row.purpose != "reference"]
    complete = sum(row.status == "complete" for row in runs)
    seeds = len(settings.seeds)
    lines = [
        f"{complete} of {len(runs)} runs are complete. Success is over all tasks. Means are over {seeds} seeds, each "
        "with data of its own; in brackets 95 % bootstrap intervals over these seeds. Choices are those with the "
        f"best mean success on other seeds ({', '.join(map(str, settings.tuning_seeds)) or 'none'}).",
        *_missing("failed", runs),
        *_missing("missing", runs),
    ]
    return "\n\n".join(lines)


def _missing(status: str, runs: list[Row]) -> list[str]:
    found = [row for row in runs if row.status == status]
    if not found:
        return []
    named = ", ".join(f"{row.run}{f' ({row.error})' if row.error else ''}" for row in found[:20])
    more = f" and {len(found) - 20} more" if len(found) > 20 else ""
    return [f"**{len(found)} runs {status}**, so that some means are over fewer seeds: {named}{more}."]


def size_table(cells: list[Cell]) -> str:
    """Chosen families from best to worst, then the references."""
    families = sorted((cell for cell in cells if cell.chosen), key=lambda cell: -(cell.success_rate or 0))
    references = [cell for cell in cells if cell.family in REFERENCES]
    titles = [
        "family", "choice", "runs", "success", "IQM", "SPL", "estimate - truth", "abs. error", "triangle violations",
    ]  # fmt: skip
    rows = [
        [
            cell.family,
            cell.choice,
            f"{cell.complete} of {cell.planned}" if cell.complete < cell.planned else str(cell.complete),
            _number(cell.success_rate) + _brackets(_pair(cell)),
            _number(cell.success_iqm),
            _number(cell.spl),
            _number(cell.signed_error, 2),
            _number(cell.absolute_error, 2),
            _number(cell.triangle_violations, 4),
        ]
        for cell in [*families, *references]
    ]
    return table(titles, rows)


def comparisons_table(findings: Findings) -> str:
    rows = [
        [each.family, f"{each.probability:.2f}{_brackets(each.interval, 2)}"]
        for each in sorted(findings.comparisons(), key=lambda each: -each.probability)
    ]
    titles = ["family", f"probability that a run of {SUBJECT} has more success, mean over sizes"]
    return table(titles, rows) if rows else ""


def claims_table(decisions: list[Decision]) -> str:
    rows = [
        [
            each.claim.text,
            _side(each.claim.more, each.claim.at),
            _number(each.more),
            _side(each.claim.than, each.claim.than_at or each.claim.at),
            _number(each.than),
            _number(each.difference) + _brackets(each.interval),
            f"**{each.verdict}**" + (f" (margin {each.claim.margin:g})" if each.claim.margin else ""),
        ]
        for each in decisions
    ]
    titles = ["claim", "more", "mean", "than", "mean", "difference", "verdict"]
    return table(titles, rows)


def _side(families: list[str], sizes: list[int] | None) -> str:
    return ", ".join(families) + (f" at {', '.join(map(str, sizes))}" if sizes else "")


def table(titles: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    return f"{value:.1e}" if abs(value) >= 1e4 else f"{value:.{digits}f}"


def _pair(cell: Cell) -> Interval | None:
    return None if cell.success_low is None or cell.success_high is None else (cell.success_low, cell.success_high)


def _brackets(interval: Interval | None, digits: int = 3) -> str:
    return "" if interval is None else f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
