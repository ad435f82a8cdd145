"""The table of a study: a row for each run and reference, in one CSV from which every figure can be made again."""

import csv
import io
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from qrl.agents.evaluation.results import REFERENCES, Record
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.kinds import Numbers
from qrl.agents.studies.study import Place, PlannedRun, Study
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_text


class Row(Record):
    """A run that has failed or is missing has a row too, without numbers."""

    run: str = Field(description="folder of the run")
    family: str = Field(description="family, or name of the reference")
    choice: str = Field("", description="which of the family's hyperparameter choices")
    model: str = Field("", description="registered name of the model")
    world: str = Field("", description="name of the world, if the study has several")
    value: float = Field(description="value of the study's axis")
    seed: int = Field(description="of data, start values and batches")
    purpose: Literal["evaluation", "tuning", "reference"] = Field(description="what the run is for")
    status: Literal["complete", "failed", "missing"] = Field(description="missing: not yet finished")
    error: str = Field("", description="why it failed")
    steps: int | None = Field(None, description="training steps")
    seconds: float | None = Field(None, description="time of the training steps")
    numbers: Numbers = Field({}, description="the metrics; in the file a column for each")

    @property
    def place(self) -> Place:
        return self.world, self.value


_FIXED = [name for name in Row.model_fields if name != "numbers"]


def gather(folder: StudyFolder, study: Study) -> list[Row]:
    """The rows of all planned runs and of the references on their data, as they are on disk."""
    rows = []
    seen = set()
    for run in study.runs:
        if not run.tuning and (run.place, run.seed) not in seen:
            seen.add((run.place, run.seed))
            rows += _reference_rows(folder, run)
    return rows + [_run_row(folder, study, run) for run in study.runs]


def _reference_rows(folder: StudyFolder, run: PlannedRun) -> list[Row]:
    found = folder.read_references(run)
    world, value = run.place
    return [
        Row(
            run="__".join(part for part in (name, world, f"{value:g}", f"seed{run.seed}") if part),
            family=name,
            world=world,
            value=value,
            seed=run.seed,
            purpose="reference",
            status="complete",
            numbers=found[name],
        )
        for name in REFERENCES
        if name in found
    ]


def _empty(run: PlannedRun) -> Row:
    world, value = run.place
    return Row(
        run=run.name,
        family=run.family,
        choice=run.choice,
        model=run.settings.model.name,
        world=world,
        value=value,
        seed=run.seed,
        purpose="tuning" if run.tuning else "evaluation",
        status="missing",
    )


def _run_row(folder: StudyFolder, study: Study, run: PlannedRun) -> Row:
    row = _empty(run)
    evaluation, failure = folder.evaluation(run), folder.failure(run)
    if evaluation.is_file():
        made = folder.run(run)
        found = {
            "status": "complete",
            "steps": int(made.last_metrics()["step"]),
            "seconds": made.seconds(),
            "numbers": study.settings.kind.part("read_numbers")(evaluation),
        }
        return row.model_copy(update=found)
    if failure is not None:
        return row.model_copy(update={"status": "failed", "error": (failure.splitlines() or ["?"])[0]})
    return row


def matched(study: Study, rows: list[Row]) -> list[Row]:
    """The rows of a file, if they are of the study; planned runs without a row get one that says so."""
    planned = {run.name: run for run in study.runs}
    given = {row.run: row for row in rows if row.purpose != "reference"}
    if len({row.run for row in rows}) < len(rows):
        raise FileError("results.csv: a run stands in it twice")
    foreign = sorted(set(given) - set(planned))
    if foreign:
        raise FileError(f"results.csv: {foreign[0]} is no run of the study {study.name}")
    references = [row for row in rows if row.purpose == "reference"]
    return references + [given.get(name) or _empty(run) for name, run in planned.items()]


def write_rows(rows: list[Row], path: Path) -> None:
    metrics = list(dict.fromkeys(name for row in rows for name in row.numbers))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*_FIXED, *metrics], lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.model_dump(include=set(_FIXED)) | row.numbers for row in rows)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def read_rows(path: Path) -> list[Row]:
    reader = csv.DictReader(io.StringIO(read_text(path, max_bytes=2**28)))
    rows = []
    for given in reader:
        if None in given or None in given.values():
            raise FileError(f"{path}, line {reader.line_num}: has not as many columns as the first line")
        values = {key: value for key, value in given.items() if value != ""}
        numbers = {key: value for key, value in values.items() if key not in _FIXED}
        fixed = {key: value for key, value in values.items() if key in _FIXED}
        try:
            rows.append(Row.model_validate(fixed | {"numbers": numbers}))
        except ValidationError as error:
            problem = error.errors()[0]
            key = ".".join(map(str, problem["loc"]))
            raise FileError(f"{path}, line {reader.line_num}: {key}: {problem['msg']}") from None
    return rows


def summary(study: Study, rows: list[Row]) -> str:
    """What a sweep would compute, and how far it is."""
    settings = study.settings
    runs = [row for row in rows if row.purpose != "reference"]
    lines = [f"{study.name}: {len(runs)} runs; {settings.axis_key} {_list(settings.values)}"]
    if settings.worlds:
        lines.append(f"worlds {', '.join(settings.worlds)}")
    lines.append(f"seeds {_list(settings.seeds)}; tuning seeds {_list(settings.tuning_seeds) or 'none'}")
    for name, family in settings.families.items():
        own = [row for row in runs if row.family == name]
        choices = " or ".join(label for label in family.choices if label)
        done = sum(row.status == "complete" for row in own)
        lines.append(f"  {name:<28} {own[0].model:<34} {done:>4} of {len(own)} complete  {choices}".rstrip())
    seconds = [row.seconds for row in runs if row.seconds is not None]
    if seconds and len(seconds) < len(runs):
        hours = (len(runs) - len(seconds)) * sum(seconds) / len(seconds) / 3600
        lines.append(
            f"about {hours:.1f} hours of training remain for one job, if runs take as long as the finished ones"
        )
    return "\n".join(lines)


def _list(values: list[int] | list[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
