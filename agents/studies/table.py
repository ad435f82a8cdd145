"""The table of a study: a row for each run and reference, in one CSV from which every figure can be made again."""

import csv
import io
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from agents.results import REFERENCES, Record, Results
from agents.studies.folder import StudyFolder
from agents.studies.study import PlannedRun, Study
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_text


class Row(Record):
    """A run that has failed or is missing has a row too, without numbers."""

    run: str = Field(description="folder of the run")
    family: str = Field(description="family, or name of the reference")
    choice: str = Field("", description="which of the family's hyperparameter choices")
    model: str = Field("", description="registered name of the model")
    trajectories: int = Field(description="size of the dataset")
    seed: int = Field(description="of the dataset, start values and batches")
    purpose: Literal["evaluation", "tuning", "reference"] = Field(description="what the run is for")
    status: Literal["complete", "failed", "missing"] = Field(description="missing: not yet finished")
    error: str = Field("", description="why it failed")
    steps: int | None = Field(None, description="training steps")
    seconds: float | None = Field(None, description="time of the training steps")
    success_rate: float | None = Field(None, description="share of all tasks that reached the goal")
    spl: float | None = Field(None, description="success weighted by true distance / steps taken")
    excess_steps: float | None = Field(None, description="steps beyond the true distance, mean over successes")
    all_pairs_success_rate: float | None = Field(None, description="success from every state to every other")
    signed_error: float | None = Field(None, description="estimated - true steps to the goal")
    absolute_error: float | None = Field(None, description="|estimated - true steps|")
    spearman: float | None = Field(None, description="rank correlation of estimate and truth")
    underestimated: float | None = Field(None, description="share estimated more than 1 below the truth")
    triangle_violations: float | None = Field(None, description="share of triples that break the triangle inequality")
    triangle_excess: float | None = Field(None, description="by how much at most")
    identity_error: float | None = Field(None, description="mean |d(x,x)|")
    asymmetry: float | None = Field(None, description="mean |d(s,g) - d(g,s)|")


def gather(folder: StudyFolder, study: Study) -> list[Row]:
    """The rows of all planned runs and of the references on their data, as they are on disk."""
    rows = []
    seen = set()
    for run in study.runs:
        if not run.tuning and run.data_name not in seen:
            seen.add(run.data_name)
            rows += _reference_rows(folder, run)
    return rows + [_run_row(folder, run) for run in study.runs]


def _reference_rows(folder: StudyFolder, run: PlannedRun) -> list[Row]:
    found = folder.read_references(run)
    return [
        Row(
            run=f"{name}__{run.data_name}",
            family=name,
            trajectories=run.trajectories,
            seed=run.seed,
            purpose="reference",
            status="complete" if name in found else "missing",
            **(_numbers(found[name]) if name in found else {}),
        )
        for name in REFERENCES
    ]


def _run_row(folder: StudyFolder, run: PlannedRun) -> Row:
    evaluation = folder.evaluation(run)
    failure = folder.failure(run)
    status = "complete" if evaluation is not None else "failed" if failure is not None else "missing"
    return Row(
        run=run.name,
        family=run.family,
        choice=run.choice,
        model=run.settings.model.name,
        trajectories=run.trajectories,
        seed=run.seed,
        purpose="tuning" if run.tuning else "evaluation",
        status=status,
        error=(failure or "").splitlines()[0] if status == "failed" else "",
        steps=None if evaluation is None else evaluation.step,
        seconds=None if evaluation is None else folder.run(run).seconds(),
        **({} if evaluation is None else _numbers(evaluation)),
    )


def _numbers(results: Results) -> dict[str, float | None]:
    found = {
        "success_rate": results.success_rate,
        "spl": results.spl,
        "excess_steps": results.excess_steps,
        "all_pairs_success_rate": results.all_pairs.success_rate if results.all_pairs else None,
    }
    if results.distances is not None:
        errors = results.distances.reachable.model_dump()
        found |= {key: errors[key] for key in ("signed_error", "absolute_error", "spearman", "underestimated")}
    if results.axioms is not None:
        axioms = results.axioms.model_dump()
        keys = ("triangle_violations", "triangle_excess", "identity_error", "asymmetry")
        found |= {key: axioms[key] for key in keys}
    return found


def write_rows(rows: list[Row], path: Path) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(Row.model_fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.model_dump() for row in rows)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def read_rows(path: Path) -> list[Row]:
    reader = csv.DictReader(io.StringIO(read_text(path, max_bytes=2**28)))
    rows = []
    for values in reader:
        try:
            rows.append(Row.model_validate({key: value for key, value in values.items() if value != ""}))
        except (ValidationError, TypeError) as error:
            problem = error.errors()[0] if isinstance(error, ValidationError) else {"loc": "?", "msg": str(error)}
            raise FileError(f"{path}, line {reader.line_num}: {problem['loc']}: {problem['msg']}") from None
    return rows


def summary(study: Study, rows: list[Row]) -> str:
    """What a sweep would compute, and how far it is."""
    runs = [row for row in rows if row.purpose != "reference"]
    lines = [f"{study.name}: {len(runs)} runs; trajectories {_list(study.settings.trajectories)}"]
    lines.append(f"seeds {_list(study.settings.seeds)}; tuning seeds {_list(study.settings.tuning_seeds) or 'none'}")
    for name, family in study.settings.families.items():
        own = [row for row in runs if row.family == name]
        choices = " or ".join(label for label in family.choices if label)
        done = sum(row.status == "complete" for row in own)
        lines.append(f"  {name:<28} {own[0].model:<34} {done:>4} of {len(own)} complete  {choices}".rstrip())
    seconds = [row.seconds for row in runs if row.seconds is not None]
    if seconds and len(seconds) < len(runs):
        hours = (len(runs) - len(seconds)) * sum(seconds) / len(seconds) / 3600
        lines.append(
            f"about {hours:.1f} hours of training remain on one job, if runs take as long as the finished ones"
        )
    return "\n".join(lines)


def _list(values: list[int]) -> str:
    return ", ".join(str(value) for value in values)
