"""What a second job gains: the same runs, one thread each, on one job and on two."""

import tempfile
import time
from pathlib import Path

from benchmarks.measure import table
from qrl.agents.studies.backends import LokyBackend
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.study import Study, StudySettings
from qrl.agents.studies.sweep import sweep

FAMILIES, SEEDS, STEPS = ("euclidean", "l1", "spherical", "metric-mixture"), 2, 1000


def _study() -> Study:
    values = {
        "config": "quick",
        "settings": {"model.width": 128, "learner.min_steps": STEPS, "compile": "off", "evaluate_every": STEPS},
        "families": {name: {"settings": {"model.params.latent_size": 64}} for name in FAMILIES},
        "axis": {"collector.trajectories": [100]},
        "seeds": list(range(SEEDS)),
    }
    return Study("benchmark", StudySettings.from_values(values, "benchmark"))


def _seconds(jobs: int) -> float:
    with tempfile.TemporaryDirectory() as temporary:
        folder, backend = StudyFolder(Path(temporary) / "results"), LokyBackend(jobs)
        backend.threads = 1
        begin = time.perf_counter()
        try:
            failed = sweep(_study(), folder, backend)
        finally:
            backend.close()
        assert not failed
        return time.perf_counter() - begin


def main() -> str:
    one, two = _seconds(1), _seconds(2)
    rows = [["1 job", f"{one:.1f} s", "1.00"], ["2 jobs", f"{two:.1f} s", f"{two / one:.2f}"]]
    note = (
        f"{len(FAMILIES) * SEEDS} runs of {STEPS:,} steps of metric embeddings, width 128, one thread; with making "
        "data and references, starting worker processes and evaluating. Half would be perfect; what is missing is data "
        "and references, which are made before any run begins, the start of workers, and the memory that both share."
    )
    return table("Sweeps", ["jobs", "time", "share"], rows, note)
