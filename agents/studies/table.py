"""The table of a study: a row per run and reference, in one CSV from which every figure can be drawn again."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from qrl.agents.errors import RunError
from qrl.agents.evaluation.metric import Value
from qrl.agents.evaluation.results import REFERENCES
from qrl.agents.runs.run import Run
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.scoring import SCORERS
from qrl.agents.studies.selection import select, tuned, wanted
from qrl.agents.studies.settings import Condition
from qrl.agents.studies.study import PlannedRun, Study
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_csv
from qrl.common.text import clip


class RunRow(BaseModel):
    """A row of results.csv; one of a failed or missing run has no scores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str = Field(description="folder of the run")
    family: str = Field(description="family, or name of the reference")
    choice: str = Field("", description="hyperparameter configuration of the family")
    model: str = Field("", description="registered name of the model")
    world: str = Field("", description="name of the world, if the study has several")
    value: float = Field(description="value of the study's axis")
    seed: int = Field(description="seed of data, initial weights and batches")
    purpose: Literal["evaluation", "tuning", "reference"] = Field(description="what the run is for")
    status: Literal["complete", "failed", "missing"] = Field(description="missing: not yet finished")
    error: str = Field("", description="why it failed")
    steps: int | None = Field(None, description="training steps")
    seconds: float | None = Field(None, description="processor time of the training steps")
    loss: float | None = Field(None, description="training loss of the last batch")
    scores: dict[str, Value] = Field({}, description="in the file, a column per metric")

    @property
    def condition(self) -> Condition:
        return Condition(self.world, self.value)


_FIXED = [name for name in RunRow.model_fields if name != "scores"]


def gather(folder: StudyFolder, study: Study, source: StudyFolder | None = None) -> list[RunRow]:
    """The rows of all planned runs and of the references on their data, as they are on disk.

    source: where the results of earlier runs are, if they have not been taken over yet.
    """
    first_runs: dict[tuple[Condition, int], PlannedRun] = {}
    for run in study.runs:
        if not run.tuning:
            first_runs.setdefault((run.condition, run.seed), run)
    references = [row for run in first_runs.values() for row in _reference_rows(folder, run)]
    earlier = taken_over(folder, study, source)
    return references + _computed(study, [earlier.get(run.name) or _run_row(folder, study, run) for run in study.runs])


def taken_over(folder: StudyFolder, study: Study, source: StudyFolder | None = None) -> dict[str, RunRow]:
    """The rows of finished runs from earlier results, by name; a run with a folder of its own is not among them."""
    path = (source or folder.earlier).results
    planned = {run.name for run in study.runs if not folder.run(run).exists()} if path.is_file() else set()
    rows = read_rows(path) if planned else []
    return {row.run: row for row in rows if row.run in planned and row.status == "complete"}


def _computed(study: Study, rows: list[RunRow]) -> list[RunRow]:
    """Of a row per planned run, those without the runs that will never be: their configuration was not selected."""
    if not tuned(study, rows):
        return rows
    selected = select(study, rows)
    pairs = zip(study.runs, rows, strict=True)
    return [row for run, row in pairs if row.status != "missing" or wanted(study, run, selected)]


def _reference_rows(folder: StudyFolder, run: PlannedRun) -> list[RunRow]:
    scores = folder.read_references(run)
    world, value = run.condition
    return [
        RunRow(
            run="__".join(part for part in (name, world, f"{value:g}", f"seed{run.seed}") if part),
            family=name,
            world=world,
            value=value,
            seed=run.seed,
            purpose="reference",
            status="complete",
            scores=scores[name],
        )
        for name in REFERENCES
        if name in scores
    ]


def _missing_row(run: PlannedRun) -> RunRow:
    world, value = run.condition
    return RunRow(
        run=run.name,
        family=run.family,
        choice=run.configuration,
        model=run.settings.model.name,
        world=world,
        value=value,
        seed=run.seed,
        purpose="tuning" if run.tuning else "evaluation",
        status="missing",
    )


def _run_row(folder: StudyFolder, study: Study, run: PlannedRun) -> RunRow:
    row = _missing_row(run)
    evaluation, failure = folder.evaluation(run), folder.failure(run)
    if evaluation.is_file():
        metrics = Run(folder.run(run), run.settings).metrics
        last = metrics.last()
        results = {
            "status": "complete",
            "steps": int(last["step"]),
            "seconds": metrics.seconds(),
            "loss": last["loss"],
            "scores": SCORERS[study.settings.command].read(evaluation),
        }
        return row.model_copy(update=results)
    if failure is not None:
        return row.model_copy(update={"status": "failed", "error": (failure.splitlines() or ["?"])[0]})
    return row


def matched(study: Study, rows: list[RunRow]) -> list[RunRow]:
    """The rows of a file, if they are of the study; planned runs that it lacks get a row as missing."""
    planned = {run.name: run for run in study.runs}
    known = {row.run: row for row in rows if row.purpose != "reference"}
    if len({row.run for row in rows}) < len(rows):
        raise FileError("results.csv: it has a run twice")
    foreign = sorted(set(known) - set(planned))
    if foreign:
        raise FileError(f"results.csv: {clip(foreign[0])} is not a run of the study {study.name}")
    references = [row for row in rows if row.purpose == "reference"]
    return references + _computed(study, [known.get(name) or _missing_row(run) for name, run in planned.items()])


def write_rows(rows: Sequence[RunRow], metrics: Iterable[str], path: Path) -> None:
    """Write the CSV, with a column per metric."""
    names = list(metrics)
    text = io.StringIO()
    writer = csv.DictWriter(text, [*_FIXED, *names], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(row.model_dump(include=set(_FIXED)) | {name: row.scores.get(name) for name in names})
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def read_rows(path: Path) -> list[RunRow]:
    table = read_csv(path)
    rows = []
    for fields, line in zip(table.rows, table.lines, strict=True):
        if None in fields or None in fields.values():
            raise FileError(f"{path}, line {line}: the number of columns is not that of the first line")
        values = {key: value for key, value in fields.items() if value != ""}
        scores = {key: value for key, value in values.items() if key not in _FIXED}
        fixed = {key: value for key, value in values.items() if key in _FIXED}
        try:
            row = RunRow.model_validate(fixed | {"scores": scores})
        except ValidationError as error:
            problem = error.errors()[0]
            key = ".".join(map(str, problem["loc"]))
            raise FileError(f"{path}, line {line}: {clip(key)}: {problem['msg']}") from None
        if undefined := [name for name, value in row.scores.items() if value is not None and math.isnan(value)]:
            raise FileError(f"{path}, line {line}: {clip(undefined[0])}: NaN is no score; leave it empty")
        rows.append(row)
    return rows


def check_kept(saved: Sequence[RunRow], rows: Sequence[RunRow], folder: StudyFolder, advice: str) -> None:
    """Refuse to replace the `saved` rows by others that lack some of their finished runs."""
    before, after = (
        {row.run for row in table if row.status == "complete" and row.purpose != "reference"} for table in (saved, rows)
    )
    if lost := before - after:
        count = f"{len(lost)} finished run{'s' * (len(lost) > 1)}, such as {clip(min(lost))},"
        raise RunError(f"{folder.path}: the results of {count} would be lost; {advice}")


def check_columns(study: Study, path: Path) -> None:
    """Refuse to replace a table that has metrics which are not registered now: their columns would be lost."""
    known = {*_FIXED, *study.settings.kind.metrics}
    unknown = [name for name in read_csv(path).columns if name not in known] if path.is_file() else []
    if unknown:
        raise FileError(
            f"{path} has the column {clip(unknown[0])}, which is not a registered metric; name the module that "
            "registers it with --plugin, or delete the file, which is then written again without it"
        )


def summary(study: Study, rows: list[RunRow]) -> str:
    """What a sweep would compute, and what is complete."""
    settings = study.settings
    runs = [row for row in rows if row.purpose != "reference"]
    lines = [f"{study.name}: {len(runs)} runs; {settings.axis_key} {_list(settings.values)}"]
    if settings.worlds:
        lines.append(f"worlds {', '.join(settings.worlds)}")
    lines.append(f"seeds {_list(settings.seeds)}; tuning seeds {_list(settings.tuning_seeds) or 'none'}")
    for name, family in settings.families.items():
        members = [row for row in runs if row.family == name]
        configurations = " or ".join(label for label in family.configurations if label)
        complete = sum(row.status == "complete" for row in members)
        progress = f"{complete:>4} of {len(members)} complete"
        lines.append(f"  {name:<28} {members[0].model:<34} {progress}  {configurations}".rstrip())
    return "\n".join(lines)


def _list(values: list[int] | list[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
