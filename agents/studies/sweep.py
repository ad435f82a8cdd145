"""A sweep: all runs of a study that are not yet finished. It may be killed at any time and started again."""

import json
from concurrent.futures import FIRST_COMPLETED, Future, wait

from tqdm import tqdm

from qrl.agents.runs.settings import RunSettings
from qrl.agents.studies.backends import Backend
from qrl.agents.studies.curves import write_curves
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.scoring import SCORERS
from qrl.agents.studies.selection import select, wanted
from qrl.agents.studies.study import PlannedRun, Study
from qrl.agents.studies.table import check_columns, check_kept, gather, read_rows, taken_over, write_rows
from qrl.agents.studies.worker import Job, check_settings
from qrl.common.errors import FileError, UserError
from qrl.common.files import atomic_write
from qrl.common.progress import Progress
from qrl.registry import find

ATTEMPTS = 2


def check_models(study: Study) -> None:
    """Refuse unknown models and parameters before anything is computed."""
    runs = {(run.family, run.configuration): run for run in study.runs}
    for run in runs.values():
        try:
            find(run.settings.model.name).parameters.from_values(run.settings.model.params, "model.params")
        except UserError as error:
            raise type(error)(f"study {study.name}, families.{run.family}: {error}") from None


def make_data(study: Study, folder: StudyFolder, missing: list[PlannedRun]) -> None:
    """Collect the datasets of missing runs, and score the references on those of all evaluation runs."""
    problem, scorer = study.settings.kind.problem, SCORERS[study.settings.command]
    needed = {run.data_name for run in missing}
    # Evaluation runs come last and therefore stay: datasets that they share with tuning runs need references too.
    runs = {run.data_name: run for run in study.runs}
    for run in tqdm(runs.values(), unit=" datasets", disable=None, leave=False):
        dataset, references = folder.dataset(run), folder.references(run)
        unscored = not run.tuning and not references.is_file()
        if dataset.is_file():
            problem.check_source(run.settings, dataset)
        elif unscored or run.data_name in needed:
            data = problem.collect(run.settings)
            scorer.check(data)
            data.save(dataset)
        if unscored:
            scores = scorer.references(dataset)
            with atomic_write(references) as file:
                file.write(json.dumps(scores, indent=2).encode())


def _settings(folder: StudyFolder, run: PlannedRun) -> RunSettings:
    """The settings of a run, with the paths of its files."""
    paths = {"run": str(folder.run(run).absolute()), "dataset": str(folder.dataset(run).absolute())}
    return run.settings.model_copy(update=paths)


def _finished(folder: StudyFolder, study: Study, run: PlannedRun) -> bool:
    """Whether a run of these settings has results; damaged ones are deleted, to be computed again."""
    evaluation = folder.evaluation(run)
    if not evaluation.is_file():
        return False
    check_settings(folder.run(run), _settings(folder, run))
    try:
        SCORERS[study.settings.command].read(evaluation)
    except FileError:
        evaluation.unlink()
        return False
    return True


def check_sweep(study: Study, folder: StudyFolder, source: StudyFolder | None = None) -> None:
    """Refuse, before anything is written, what would mix studies or lose results that have no run of their own."""
    folder.check(study)
    if source is not None:
        source.check_results(study)
        check_columns(study, source.results)
    check_columns(study, folder.results)
    saved = list(taken_over(folder, study).values())
    if not folder.has_runs and folder.results.is_file():  # a table without its runs, as of a published study
        saved += read_rows(folder.results)
    advice = f"compute in another folder, with out=... and --from {folder.path}"
    if source is not None:
        advice = f"--from {source.path} lacks them: leave it out, or compute in another folder with out=..."
    check_kept(saved, list(taken_over(folder, study, source).values()), folder, advice)


def sweep(
    study: Study,
    folder: StudyFolder,
    backend: Backend,
    plugins: tuple[str, ...] = (),
    source: StudyFolder | None = None,
) -> int:
    """Compute what is missing; returns the number of runs that failed twice.

    source: results of the study, such as published ones, whose finished runs are taken over.
    """
    with folder.lock():
        check_sweep(study, folder, source)
        folder.open(study)
        if source is not None:
            folder.take_over(source)
        earlier = taken_over(folder, study)
        missing = [run for run in study.runs if run.name not in earlier and not _finished(folder, study, run)]
        make_data(study, folder, missing)
        phases = [missing]
        if study.settings.evaluate == "selected":
            phases = [[run for run in missing if run.tuning is tuning] for tuning in (True, False)]
        failed = 0
        for phase in phases:
            selected = select(study, gather(folder, study))
            failed += _compute(study, folder, backend, [run for run in phase if wanted(study, run, selected)], plugins)
    return failed


def _compute(
    study: Study, folder: StudyFolder, backend: Backend, missing: list[PlannedRun], plugins: tuple[str, ...]
) -> int:
    """Compute runs, and write the table; returns the number of those that failed twice."""

    def submit(run: PlannedRun) -> "Future[str | None]":
        values = _settings(folder, run).model_dump() | {"threads": backend.threads}
        return backend.submit(Job(study.settings.command, values, plugins))

    done = sum(row.status == "complete" for row in gather(folder, study) if row.purpose != "reference")
    total, failed = done + len(missing), 0
    waiting = {submit(run): (run, 1) for run in missing}
    try:
        with Progress(total, done, "runs") as progress:
            while waiting:
                for future in wait(waiting, progress.timeout, return_when=FIRST_COMPLETED).done:
                    run, attempts = waiting.pop(future)
                    error = future.result()
                    if error is not None and attempts < ATTEMPTS:
                        waiting[submit(run)] = (run, attempts + 1)
                        continue
                    folder.write_failure(run, error)
                    if error is not None:
                        failed += 1
                        with tqdm.external_write_mode():
                            print(f"failed: {run.name}: {error.splitlines()[0]}", flush=True)
                    progress.update(total - len(waiting), {"failed": failed})
                progress.tick()
    finally:
        write_rows(gather(folder, study), study.settings.kind.metrics, folder.results)
        write_curves(study, folder)
    return failed
