"""curves.csv: what the finished runs of a study scored while they were trained, against steps and seconds."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from qrl.agents.runs.run import Run
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.study import Study
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_csv

COLUMNS = ("family", "choice", "world", "value", "seed", "step", "seconds")
Curve = dict[str, str]  # a row of the file: an evaluation of a run


def write_curves(study: Study, folder: StudyFolder) -> None:
    """A row per evaluation of each finished run on the evaluation seeds."""
    metrics = [column for column, metric in study.settings.kind.metrics.items() if metric.in_training]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*COLUMNS, *metrics], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for run in study.runs:
        if not run.tuning and folder.evaluation(run).is_file():
            world, value = run.condition
            named = {"family": run.family, "choice": run.configuration, "world": world, "value": f"{value:g}"}
            for row in Run(folder.run(run), run.settings).metrics.evaluations(metrics[0]):
                writer.writerow(row | named | {"seed": run.seed})
    with atomic_write(folder.curves) as file:
        file.write(text.getvalue().encode())


def read_curves(path: Path) -> Sequence[Curve]:
    columns, rows, _ = read_csv(path)
    if rows and not set(COLUMNS) <= set(columns):
        raise FileError(f"{path}: the first line must name the columns {', '.join(COLUMNS)}")
    return rows
