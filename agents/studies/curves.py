"""curves.csv: what the finished runs of a study scored while they were trained, against steps and seconds."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from qrl.agents.runs.run import Run
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.study import PlannedRun, Study
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_csv
from qrl.common.text import clip, shown

COLUMNS = ("family", "choice", "world", "value", "seed", "step", "seconds")
_NUMBERS: dict[str, Callable[[Any], Any]] = {"family": str, "choice": str, "world": str, "seed": int, "step": int}
Curve = dict[str, str]  # a row of the file: an evaluation of a run


def write_curves(study: Study, folder: StudyFolder) -> None:
    """A row per evaluation of each finished run on the evaluation seeds."""
    metrics = [column for column, metric in study.settings.kind.metrics.items() if metric.in_training]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*COLUMNS, *metrics], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    earlier = read_curves(folder.earlier.curves) if folder.earlier.curves.is_file() else []
    for run in study.runs:
        if run.tuning:
            continue
        if folder.evaluation(run).is_file():
            rows = Run(folder.run(run), run.settings).metrics.evaluations(metrics[0])
            writer.writerows(row | _named(run) for row in rows)
        elif not folder.run(run).exists():
            writer.writerows(row for row in earlier if _named(run).items() <= row.items())
    with atomic_write(folder.curves) as file:
        file.write(text.getvalue().encode())


def _named(run: PlannedRun) -> Curve:
    """The columns that tell which run a row is of."""
    world, value = run.condition
    named = {"family": run.family, "choice": run.configuration, "world": world, "value": f"{value:g}"}
    return named | {"seed": str(run.seed)}


def read_curves(path: Path) -> Sequence[Curve]:
    columns, rows, lines = read_csv(path)
    if rows and not set(COLUMNS) <= set(columns):
        raise FileError(f"{path}: the first line must name the columns {', '.join(COLUMNS)}")
    for row, line in zip(rows, lines, strict=True):
        if None in row or None in row.values():
            raise FileError(f"{path}, line {line}: the number of columns is not that of the first line")
        for column, text in row.items():
            number = _NUMBERS.get(column, float)
            try:
                number(text or 0)
            except ValueError:
                raise FileError(f"{path}, line {line}: {clip(column)}: {shown(text)} is not a number") from None
    return rows
