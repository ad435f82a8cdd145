"""The speedup of a second job: the same runs with one thread each, as one job and as two."""

import tempfile
import time
from pathlib import Path

from benchmarks.measure import table
from qrl.agents.studies.backends import LokyBackend
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.settings import StudySettings
from qrl.agents.studies.study import Study
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
        start = time.perf_counter()
        with LokyBackend(jobs) as backend:
            backend.threads = 1
            failed = sweep(_study(), StudyFolder(Path(temporary) / "results"), backend)
        assert not failed
        return time.perf_counter() - start


def main() -> str:
    one, two = _seconds(1), _seconds(2)
    rows = [["1 job", f"{one:.1f} s", "1.00"], ["2 jobs", f"{two:.1f} s", f"{two / one:.2f}"]]
    note = (
        f"{len(FAMILIES) * SEEDS} runs of {STEPS:,} steps of metric embeddings, width 128, one thread each, including "
        "data, references, the start of worker processes, and evaluation. Perfect scaling would give 0.50; the rest is "
        "spent on data and references, which precede all runs, on starting workers, and on contention for memory."
    )
    return table("Sweeps", ["jobs", "time", "fraction"], rows, note)
