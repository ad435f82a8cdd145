"""The report of a study: tables as CSV and Markdown, and the figure."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.evaluation.statistics import mean_ranks
from qrl.agents.studies.curves import Curve
from qrl.agents.studies.findings import FOCUS_FAMILY, Decision, Findings, GroupSummary
from qrl.agents.studies.pictures import curves_picture, study_picture
from qrl.agents.studies.selection import tuning_means
from qrl.agents.studies.settings import Condition
from qrl.agents.studies.statistics import Interval
from qrl.agents.studies.table import RunRow
from qrl.common.files import atomic_write

FILES = ("report.md", "summary.csv", "figure", "learning-curves")  # the figures in every format


def write_report(findings: Findings, folder: Path, curves: Sequence[Curve] = ()) -> list[Path]:
    """Write `FILES` into the folder; learning curves only if there are any."""
    text, table, picture, curves_path = (folder / name for name in FILES)
    groups = findings.summaries()
    figures = study_picture(findings, groups, picture)
    learning = curves_picture(findings, curves, curves_path)
    with atomic_write(table) as file:
        file.write(_csv(groups).encode())
    with atomic_write(text) as file:
        file.write(markdown(findings, groups, [paths[0].name for paths in (figures, learning) if paths]).encode())
    return [text, table, *figures, *learning]


def _csv(groups: list[GroupSummary]) -> str:
    rows = [
        {
            "family": group.family,
            "choice": group.configuration,
            "chosen": group.selected,
            "world": group.condition.world,
            "value": group.condition.value,
            "planned": group.planned,
            "complete": group.complete,
            "failed": group.failed,
            "low": None if group.interval is None else group.interval[0],
            "high": None if group.interval is None else group.interval[1],
            "iqm": group.iqm,
            **group.means,
        }
        for group in groups
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def markdown(findings: Findings, groups: list[GroupSummary], pictures: Sequence[str] = ()) -> str:
    parts = [f"# Study {findings.study.name}", progress(findings)]
    parts += [f"![{findings.kind.ranking}]({picture})" for picture in pictures]
    if len(findings.conditions) > 1:
        parts += ["## At a glance", *overview_tables(findings, groups)]
    for condition in findings.conditions:
        parts += [f"## {condition_title(findings, condition)}", condition_table(findings, condition, groups)]
    comparisons = comparisons_table(findings)
    if comparisons:
        parts += [f"## How often {FOCUS_FAMILY} is better", comparisons]
    if findings.study.settings.claims:
        parts += ["## Claims", claims_table(findings)]
    tuning = tuning_table(findings)
    if tuning:
        parts += ["## Tuning", tuning]
    return "\n\n".join(parts) + "\n"


def progress(findings: Findings) -> str:
    settings = findings.study.settings
    runs = [row for row in findings.rows if row.purpose != "reference"]
    complete = sum(row.status == "complete" for row in runs)
    partial = any(row.status != "complete" for row in runs if row.purpose == "evaluation")
    lines = [
        f"{complete} of {len(runs)} runs are complete. "
        f"Means are over {'up to ' if partial else ''}{len(settings.seeds)} seeds of {findings.kind.drawn}, "
        "initial weights and batches, with 95 % bootstrap intervals in brackets."
    ]
    if settings.tuning_seeds:
        seeds = ", ".join(map(str, settings.tuning_seeds))
        lines[0] += f" Hyperparameter configurations are selected on separate seeds ({seeds})."
    if findings.untuned:
        names = ", ".join(map(str, findings.untuned))
        lines.append(f"**Not tuned yet**, so that claims have no data and the first configuration is shown: {names}.")
    if findings.provisional:
        names = ", ".join(map(str, findings.provisional))
        lines.append(f"**Tuning is not complete**, so that the best configuration so far is shown: {names}.")
    return "\n\n".join([*lines, *_named("failed", runs), *_named("missing", runs)])


def _named(status: str, runs: list[RunRow]) -> list[str]:
    rows = [row for row in runs if row.status == status]
    if not rows:
        return []
    named = ", ".join(f"{row.run}{f' ({row.error})' if row.error else ''}" for row in rows[:20])
    more = f" and {len(rows) - 20} more" if len(rows) > 20 else ""
    tuning = (
        " (in tuning)" if all(row.purpose == "tuning" for row in rows) else ", so that some means are over fewer seeds"
    )
    return [f"**{len(rows)} run{'s' * (len(rows) > 1)} {status}**{tuning}: {named}{more}."]


def condition_title(findings: Findings, condition: Condition) -> str:
    world, value = condition
    return f"{f'{world}, ' if world else ''}{findings.study.settings.axis_name} {value:,g}"


def overview_tables(findings: Findings, groups: list[GroupSummary]) -> list[str]:
    """One table, or one per world where their families differ: a rank among few says less than one among many."""
    settings = findings.study.settings
    if all(family.worlds is None for family in settings.families.values()):
        return [overview_table(findings, groups)]
    return [overview_table(findings, groups, world) for world in settings.worlds]


def overview_table(findings: Findings, groups: list[GroupSummary], world: str | None = None) -> str:
    """The ranking metric of the families under all conditions, from the best mean rank to the worst; best in bold."""
    metric, sign = findings.kind.ranking, -1 if findings.kind.higher_is_better else 1
    conditions = [condition for condition in findings.conditions if world in (None, condition.world)]
    digits = findings.kind.metrics[metric].digits
    selected = [group for group in groups if group.selected and metric in group.means and group.condition in conditions]
    means = {(group.family, group.condition): group.means[metric] for group in selected}
    ranks: dict[str, list[float]] = {group.family: [] for group in selected}
    best = {}
    for condition in conditions:
        families = [family for family in ranks if (family, condition) in means]
        scores = np.array([sign * means[family, condition] for family in families])
        best[condition] = [family for family, score in zip(families, scores, strict=True) if score == min(scores)]
        for family, rank in zip(families, mean_ranks(scores), strict=True):
            ranks[family].append(rank)
    overall = {family: sum(numbers) / len(numbers) for family, numbers in ranks.items()}
    rows = [
        [
            family,
            f"{mean_rank:.1f}",
            *(
                ("**{}**" if family in best[condition] else "{}").format(
                    _number(means.get((family, condition)), digits)
                )
                for condition in conditions
            ),
        ]
        for family, mean_rank in sorted(overall.items(), key=lambda item: item[1])
    ]
    titles = ["family", "mean rank", *(condition_title(findings, condition) for condition in conditions)]
    return table(titles, rows)


def condition_table(findings: Findings, condition: Condition, groups: list[GroupSummary]) -> str:
    """Families from best to worst, then those without results and the references."""
    kind, metric = findings.kind, findings.kind.ranking
    digits = kind.metrics[metric].digits
    rows = [group for group in groups if group.condition == condition]
    others = {
        name: other
        for name, other in kind.headline.items()
        if name != metric and any(name in group.means for group in rows)  # results of earlier releases lack some
    }
    ranked = [group for group in rows if group.selected and group.complete]
    ranked.sort(key=lambda group: group.means.get(metric, 0), reverse=kind.higher_is_better)
    unranked = [group for group in rows if (group.selected and not group.complete) or group.family in REFERENCES]
    losses = any("loss" in group.means for group in rows)
    titles = ["family", "configuration", "runs", kind.title(metric), "IQM", *map(kind.title, others)]
    titles += ["training loss"] * losses
    cells = [
        [
            group.family,
            group.configuration,
            f"{group.complete} of {group.planned}" if group.complete < group.planned else str(group.complete),
            _number(group.means.get(metric), digits) + _brackets(group.interval, digits),
            _number(group.iqm, digits),
            *(_number(group.means.get(name), other.digits) for name, other in others.items()),
            *[f"{group.means['loss']:.2g}" if "loss" in group.means else "-"] * losses,
        ]
        for group in [*ranked, *unranked]
    ]
    return table(titles, cells)


def comparisons_table(findings: Findings) -> str:
    rows = [
        [comparison.family, _number(comparison.probability, 2) + _brackets(comparison.interval, 2)]
        for comparison in sorted(findings.comparisons(), key=lambda comparison: -(comparison.probability or 0))
    ]
    titles = ["family", f"probability that a run of {FOCUS_FAMILY} is better, mean over all sizes and worlds"]
    return table(titles, rows) if rows else ""


def tuning_table(findings: Findings) -> str:
    """What was tried on the tuning seeds, wherever a family has several configurations; the selected one first."""
    digits = findings.kind.metrics[findings.kind.ranking].digits
    rows = []
    for place, means in tuning_means(findings.study, findings.rows).items():
        if len(means) > 1 and any(mean is not None for mean in means.values()):
            selected = findings.selected[place]
            others = ", ".join(f"{name}: {_number(mean, digits)}" for name, mean in means.items() if name != selected)
            rows.append([str(place), selected, _number(means[selected], digits), others])
    titles = ["family", "selected", findings.kind.title(findings.kind.ranking), "also tried"]
    return table(titles, rows) if rows else ""


def claims_table(findings: Findings) -> str:
    titles = ["claim", "more", "mean", "than", "mean", "difference", "verdict"]
    return table(titles, [_claim_row(findings, decision) for decision in findings.decisions()])


def _claim_row(findings: Findings, decision: Decision) -> list[str]:
    claim = decision.claim
    metric = claim.metric or findings.kind.ranking
    digits = findings.kind.metrics[metric].digits
    return [
        f"{claim.text} ({findings.kind.title(metric)})",
        _side(decision.more_families, claim.at, claim.worlds),
        _number(decision.more, digits),
        _side(decision.than_families, claim.than_at or claim.at, claim.than_worlds or claim.worlds),
        _number(decision.than, digits),
        _number(decision.difference, digits) + _brackets(decision.interval, digits),
        f"**{decision.verdict}**" + (f" (margin {claim.margin:g})" if claim.margin else ""),
    ]


def _side(families: list[str], values: list[float] | None, worlds: list[str] | None) -> str:
    conditions = [*(f"{value:g}" for value in values or []), *(worlds or [])]
    return ", ".join(families) + (f" at {', '.join(conditions)}" if conditions else "")


def table(titles: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    return f"{value:.1e}" if 1e4 <= abs(value) < float("inf") else f"{value:.{digits}f}"


def _brackets(interval: Interval | None, digits: int = 3) -> str:
    return "" if interval is None else f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
