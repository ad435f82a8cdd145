"""Refresh what objectives.md shows beside the tables of its study: every learner with every model, from results.csv."""

import csv
import io
from pathlib import Path

from qrl.agents.studies.findings import Findings
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.selection import select
from qrl.agents.studies.table import RunRow, matched, read_rows
from qrl.common.files import atomic_write

FOLDER = Path(__file__).parent / "objectives"
TRAPS = FOLDER / "traps"
MODELS = {"iqe": "iqe-maxmean", "mrn": "mrn-fixed", "unconstrained": "unconstrained"}
METRICS = {
    "success_rate": ("success", 3),
    "all_pairs_success_rate": ("all pairs", 3),
    "unseen_success_rate": ("unseen pairs", 3),
    "ranking_accuracy": ("ranking accuracy", 3),
    "absolute_error": ("absolute error", 2),
    "signed_error": ("estimate - exact", 2),
    "ratio_cv": ("variation", 3),
}


TRAPS_METRICS = {
    "success_rate": ("success", 3),
    "all_pairs_success_rate": ("all pairs", 3),
    "absolute_error": ("absolute error, reachable", 2),
    "unreachable_estimate": ("mean estimate, unreachable", 1),
    "unreachable_beyond": ("of these longer than every exact distance", 3),
}


def cells(row: RunRow) -> list[str]:
    learner, _, model = row.family.rpartition("-")
    scores = {key: row.scores.get(key) for key in METRICS}
    values = ["-" if scores[key] is None else f"{scores[key]:.{digits}f}" for key, (_, digits) in METRICS.items()]
    return [learner, MODELS[model], row.choice.removeprefix("lr="), *values]


def tuning_table() -> list[list[str]]:
    """Of each family, the run on the tuning seed with the better rate."""
    folder = StudyFolder(FOLDER)
    study = folder.read_study()
    rows = matched(study, read_rows(folder.results))
    selected = select(study, rows)
    tuned = [row for row in rows if row.purpose == "tuning" and row.choice == selected[row.family]]
    return [["learner", "model", "rate", *(title for title, _ in METRICS.values())], *map(cells, tuned)]


def traps_table() -> list[list[str]]:
    """Means over the seeds, by learner."""
    folder = StudyFolder(TRAPS)
    study = folder.read_study()
    groups = Findings(study, matched(study, read_rows(folder.results))).summaries()
    titles = ["learner", *(title for title, _ in TRAPS_METRICS.values())]
    return [titles] + [
        [group.family, *(f"{group.means[key]:.{digits}f}" for key, (_, digits) in TRAPS_METRICS.items())]
        for group in groups
        if group.family in study.settings.families
    ]


def main() -> None:
    for path, table in ((FOLDER / "tuning.csv", tuning_table()), (TRAPS / "learners.csv", traps_table())):
        with atomic_write(path) as file:
            csv.writer(text := io.StringIO(), lineterminator="\n").writerows(table)
            file.write(text.getvalue().encode())


if __name__ == "__main__":
    main()
