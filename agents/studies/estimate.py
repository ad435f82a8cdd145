"""How long a sweep would take, from a few timed training steps of each family."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from qrl.agents.runs.dry_run import seconds_per_step
from qrl.agents.runs.run import Run
from qrl.agents.runs.settings import RunSettings
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.study import PlannedRun, Study

MEASURED = (
    "measured on this machine: some training steps per family, without compiled kernels; assumed: all runs of a family "
    "take as long per step, and jobs do not slow each other down; left out: data, references, compiling and evaluations"
)


def estimate_lines(
    study: Study, folder: StudyFolder, todo: Mapping[str, list[PlannedRun]], jobs: int, threads: int
) -> Iterator[str]:
    """A line per family that has runs to do, as soon as it has been timed, and one for all of them."""
    datasets: dict[str, Any] = {}
    total = 0.0
    for family, runs in todo.items():
        if not runs:
            continue
        # Evaluation runs of all families share their data.
        sample = next(run for run in study.runs if run.family == family and not run.tuning)
        if sample.data_name not in datasets:
            datasets[sample.data_name] = _dataset(study, folder, sample)
        settings = sample.settings.model_copy(update={"threads": threads, "compile": "off"})
        learner = Run.prepare(settings, datasets[sample.data_name]).trainer.learner
        per_step = seconds_per_step(learner)
        steps = sum(_num_steps(study, run, sample, learner.num_samples) for run in runs)
        total += per_step * steps
        yield (
            f"  {family:<28} to do: runs {len(runs)}, steps {steps:,}, {1000 * per_step:.1f} ms per step, "
            f"about {_duration(per_step * steps)}"
        )
    busy = min(jobs, sum(map(len, todo.values())))
    if busy:
        yield f"about {_duration(total)} of training, {_duration(total / busy)} with --jobs {busy} (threads {threads})"
        yield MEASURED


def _dataset(study: Study, folder: StudyFolder, run: PlannedRun) -> Any:
    problem, path = study.settings.kind.problem, folder.dataset(run)
    return problem.dataset_type.load(path) if path.is_file() else problem.collect(run.settings)


def _num_steps(study: Study, run: PlannedRun, sample: PlannedRun, num_samples: int) -> int:
    """The steps of a run, whose data is to that of `sample` as the settings of its size."""
    ratios = (_value(run.settings, key) / _value(sample.settings, key) for key in study.settings.kind.sizes)
    return run.settings.learner.num_steps(round(num_samples * math.prod(ratios)))


def _value(settings: RunSettings, dotted: str) -> float:
    value: Any = settings
    for key in dotted.split("."):
        value = getattr(value, key)
    return float(value)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
