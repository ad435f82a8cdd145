"""The report of a study: tables as CSV and Markdown, and the figure."""

import csv
import io
from pathlib import Path

from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.studies.findings import SUBJECT, Cell, Decision, Findings
from qrl.agents.studies.pictures import study_picture
from qrl.agents.studies.statistics import Interval
from qrl.agents.studies.study import Place
from qrl.agents.studies.table import Row
from qrl.common.files import atomic_write

FILES = ("report.md", "summary.csv", "figure.png")


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
    fixed = ["family", "choice", "chosen", "world", "value", "planned", "complete", "failed", "low", "high", "iqm"]
    metrics = list(dict.fromkeys(name for cell in cells for name in cell.means))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*fixed, *metrics], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        (world, value), (low, high) = cell.place, cell.interval or (None, None)
        writer.writerow(vars(cell) | cell.means | {"world": world, "value": value, "low": low, "high": high})
    return text.getvalue()


def markdown(findings: Findings, cells: list[Cell], picture: str) -> str:
    parts = [f"# Study {findings.study.name}", progress(findings), f"![{findings.kind.metric}]({picture})"]
    if len(findings.places) > 1:
        parts += ["## At a glance", overview_table(findings, cells)]
    for place in findings.places:
        parts += [f"## {place_title(findings, place)}", place_table(findings, place, cells)]
    comparisons = comparisons_table(findings)
    if comparisons:
        parts += [f"## How often {SUBJECT} is better", comparisons]
    if findings.study.settings.claims:
        parts += ["## Claims", claims_table(findings)]
    return "\n\n".join(parts) + "\n"


def progress(findings: Findings) -> str:
    settings = findings.study.settings
    runs = [row for row in findings.rows if row.purpose != "reference"]
    complete = sum(row.status == "complete" for row in runs)
    tuned = ", ".join(map(str, settings.tuning_seeds))
    lines = [
        f"{complete} of {len(runs)} runs are complete. Means are over {len(settings.seeds)} seeds, each with its own "
        f"{findings.kind.drawn}, start values and batches; in brackets 95 % bootstrap intervals over these seeds."
        + (f" Choices are those that do best on other seeds ({tuned})." if tuned else ""),
        *(
            [f"**Not tuned yet**, so that the first choice stands: {', '.join(findings.untuned)}."]
            if findings.untuned
            else []
        ),
        *_named("failed", runs),
        *_named("missing", runs),
    ]
    return "\n\n".join(lines)


def _named(status: str, runs: list[Row]) -> list[str]:
    found = [row for row in runs if row.status == status]
    if not found:
        return []
    named = ", ".join(f"{row.run}{f' ({row.error})' if row.error else ''}" for row in found[:20])
    more = f" and {len(found) - 20} more" if len(found) > 20 else ""
    return [f"**{len(found)} runs {status}**, so that some means are over fewer seeds: {named}{more}."]


def place_title(findings: Findings, place: Place) -> str:
    world, value = place
    return f"{f'{world}, ' if world else ''}{findings.study.settings.axis_name} {value:,g}"


def overview_table(findings: Findings, cells: list[Cell]) -> str:
    """The first metric of the chosen families in all places, from the best mean rank to the worst; the best is bold."""
    metric, sign = findings.kind.metric, -1 if findings.kind.more_is_better else 1
    digits = findings.kind.metrics[metric].digits
    chosen = [cell for cell in cells if cell.chosen and metric in cell.means]
    means = {(cell.family, cell.place): cell.means[metric] for cell in chosen}
    ranks: dict[str, list[int]] = {cell.family: [] for cell in chosen}
    best = {}
    for place in findings.places:
        ranked = sorted(
            (family for family in ranks if (family, place) in means), key=lambda each: sign * means[each, place]
        )
        best[place] = ranked[:1]
        for rank, family in enumerate(ranked, 1):
            ranks[family].append(rank)
    rows = [
        [
            family,
            f"{sum(own) / len(own):.1f}",
            *(
                ("**{}**" if family in best[place] else "{}").format(_number(means.get((family, place)), digits))
                for place in findings.places
            ),
        ]
        for family, own in sorted(ranks.items(), key=lambda each: sum(each[1]) / len(each[1]))
    ]
    return table(["family", "mean rank", *(place_title(findings, place) for place in findings.places)], rows)


def place_table(findings: Findings, place: Place, cells: list[Cell]) -> str:
    """Chosen families from best to worst, then the references."""
    kind = findings.kind
    here = [cell for cell in cells if cell.place == place]
    ranked = [cell for cell in here if cell.chosen and cell.complete]
    ranked.sort(key=lambda cell: cell.means.get(kind.metric, 0), reverse=kind.more_is_better)
    others = [cell for cell in here if (cell.chosen and not cell.complete) or cell.family in REFERENCES]
    first, *rest = kind.metrics.items()
    titles = ["family", "choice", "runs", first[1].title, "IQM", *(metric.title for _, metric in rest)]
    rows = [
        [
            cell.family,
            cell.choice,
            f"{cell.complete} of {cell.planned}" if cell.complete < cell.planned else str(cell.complete),
            _number(cell.means.get(first[0]), first[1].digits) + _brackets(cell.interval, first[1].digits),
            _number(cell.iqm, first[1].digits),
            *(_number(cell.means.get(name), metric.digits) for name, metric in rest),
        ]
        for cell in [*ranked, *others]
    ]
    return table(titles, rows)


def comparisons_table(findings: Findings) -> str:
    rows = [
        [each.family, _number(each.probability, 2) + _brackets(each.interval, 2)]
        for each in sorted(findings.comparisons(), key=lambda each: -(each.probability or 0))
    ]
    titles = ["family", f"probability that a run of {SUBJECT} is better, mean over all sizes and worlds"]
    return table(titles, rows) if rows else ""


def claims_table(findings: Findings) -> str:
    titles = ["claim", "more", "mean", "than", "mean", "difference", "verdict"]
    return table(titles, [_claim_row(findings, each) for each in findings.decisions()])


def _claim_row(findings: Findings, decision: Decision) -> list[str]:
    claim = decision.claim
    metric = findings.kind.metrics[claim.metric or findings.kind.metric]
    digits = metric.digits
    return [
        f"{claim.text} ({metric.title})",
        _side(decision.more_families, claim.at, claim.worlds),
        _number(decision.more, digits),
        _side(decision.than_families, claim.than_at or claim.at, claim.worlds),
        _number(decision.than, digits),
        _number(decision.difference, digits) + _brackets(decision.interval, digits),
        f"**{decision.verdict}**" + (f" (margin {claim.margin:g})" if claim.margin else ""),
    ]


def _side(families: list[str], values: list[float] | None, worlds: list[str] | None) -> str:
    places = [*(f"{value:g}" for value in values or []), *(worlds or [])]
    return ", ".join(families) + (f" at {', '.join(places)}" if places else "")


def table(titles: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    return f"{value:.1e}" if 1e4 <= abs(value) < float("inf") else f"{value:.{digits}f}"


def _brackets(interval: Interval | None, digits: int = 3) -> str:
    return "" if interval is None else f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
