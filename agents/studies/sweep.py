"""A sweep: all runs of a study that are not yet finished. Kill it at any moment and start it again."""

import json
from concurrent.futures import FIRST_COMPLETED, Future, wait

from tqdm import tqdm

from qrl.agents.studies.backends import Backend
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.study import PlannedRun, Study
from qrl.agents.studies.table import gather, write_rows
from qrl.agents.studies.worker import Task, check_settings
from qrl.common.errors import FileError, UserError
from qrl.common.files import atomic_write
from qrl.registry import find

ATTEMPTS = 2


def check_models(study: Study) -> None:
    """Refuse unknown models and parameters before anything is computed."""
    checked = set()
    for run in study.runs:
        if (run.family, run.choice) in checked:
            continue
        checked.add((run.family, run.choice))
        try:
            find(run.settings.model.name).parameters.from_values(run.settings.model.params, "model.params")
        except UserError as error:
            raise type(error)(f"study {study.name}, families.{run.family}: {error}") from None


def make_data(study: Study, folder: StudyFolder) -> None:
    """Make the datasets that are not there yet, and score the references on those that runs are evaluated with."""
    kind = study.settings.kind
    # Evaluation runs come last and so stay: what they share with tuning runs needs references too.
    runs = {run.data_name: run for run in study.runs}
    for run in tqdm(runs.values(), unit=" datasets", disable=None, leave=False):
        if not folder.dataset(run).is_file():
            kind.part("TRAINING").collect(run.settings).save(folder.dataset(run))
        if not run.tuning and not folder.references(run).is_file():
            scored = kind.part("references")(folder.dataset(run))
            with atomic_write(folder.references(run)) as file:
                file.write(json.dumps(scored, indent=2).encode())


def _finished(folder: StudyFolder, study: Study, run: PlannedRun) -> bool:
    """Whether a run has results, and of these settings; damaged results are made again."""
    evaluation = folder.evaluation(run)
    if not evaluation.is_file():
        return False
    check_settings(folder.run(run), run.settings)
    try:
        study.settings.kind.part("read_numbers")(evaluation)
    except FileError:
        evaluation.unlink()
        return False
    return True


def sweep(study: Study, folder: StudyFolder, backend: Backend, plugins: tuple[str, ...] = ()) -> int:
    """Compute what is missing; returns the number of runs that failed twice."""
    with folder.lock():
        folder.open(study)
        make_data(study, folder)
        missing = [run for run in study.runs if not _finished(folder, study, run)]
        failed = 0

        def submit(run: PlannedRun) -> "Future[str | None]":
            places = {"run": str(folder.run(run).path.absolute()), "dataset": str(folder.dataset(run).absolute())}
            values = run.settings.model_dump() | places | {"threads": backend.threads}
            return backend.submit(Task(study.settings.command, values, plugins))

        waiting = {submit(run): (run, 1) for run in missing}
        done_before = len(study.runs) - len(missing)
        try:
            with tqdm(total=len(study.runs), initial=done_before, unit=" runs", disable=None) as bar:
                while waiting:
                    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                        run, attempts = waiting.pop(future)
                        error = future.result()
                        if error is not None and attempts < ATTEMPTS:
                            waiting[submit(run)] = (run, attempts + 1)
                            continue
                        folder.write_failure(run, error)
                        bar.update()
                        if error is not None:
                            failed += 1
                            tqdm.write(f"failed: {run.name}: {error.splitlines()[0]}")
        finally:
            write_rows(gather(folder, study), folder.results)
    return failed
