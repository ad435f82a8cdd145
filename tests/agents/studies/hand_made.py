"""Studies and rows made by hand, and tiny studies that are really swept."""

from pathlib import Path
from typing import Any

from qrl.agents.studies.backends import Backend
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.settings import StudySettings
from qrl.agents.studies.study import Study
from qrl.agents.studies.sweep import sweep
from qrl.agents.studies.table import RunRow, read_rows
from qrl.agents.studies.worker import Job, attempt

BETTER = {"text": "better", "more": ["iqe-maxmean"], "than": ["dot"]}


def study(**changes: Any) -> Study:
    values: dict[str, Any] = {
        "families": {
            "iqe-maxmean": {},
            "dot": {"model": "dot-disc", "grid": {"learner.triangle": [1, 3]}},
        },
        "axis": {"collector.trajectories": [10, 100]},
        "seeds": [0, 1, 2],
        "tuning_seeds": [7],
        "claims": [BETTER],
    }
    return Study("test", StudySettings.from_values(values | changes, "test"))


def row(family: str, size: int, seed: int, success: float | None, configuration: str = "", **changes: Any) -> RunRow:
    values: dict[str, Any] = {
        "run": f"{family}-{configuration}-{size}-{seed}",
        "family": family,
        "choice": configuration,
        "value": size,
        "seed": seed,
        "purpose": "tuning" if seed == 7 else "evaluation",
        "status": "complete",
        "scores": {} if success is None else {"success_rate": success, "signed_error": -10 * success},
    }
    return RunRow.model_validate(values | changes)


def rows() -> list[RunRow]:
    """iqe-maxmean: 0.4, 0.5, 0.6, and 1.5 times as much with more data; dot: 0.1 less, if selected by tuning."""
    runs = [row("oracle", size, seed, 1.0, purpose="reference") for size in (10, 100) for seed in range(3)]
    for scale, size in ((1, 10), (1.5, 100)):
        for seed, success in enumerate((0.4, 0.5, 0.6)):
            runs.append(row("iqe-maxmean", size, seed, scale * success))
            runs.append(row("dot", size, seed, scale * success - 0.1, "triangle=1"))
            runs.append(row("dot", size, seed, 1.0, "triangle=3"))  # better, but not on the tuning seed
        runs.append(row("dot", size, 7, 0.3, "triangle=1"))
        runs.append(row("dot", size, 7, 0.2, "triangle=3"))
    return runs


# Small enough to be trained in a test

TINY: dict[str, Any] = {
    "settings": {
        "collector": {"layout": "corridor", "max_steps": 20},
        "model": {"width": 8, "latent_size": 8},
        "learner": {"batch_size": 16, "epochs": 0.01, "min_steps": 6},
        "compile": "off",
        "checkpoint_every": 2,
        "log_every": 2,
    },
    "families": {"iqe-maxmean": {}},
    "axis": {"collector.trajectories": [5]},
    "seeds": [0],
}
TINY_GRAPHS: dict[str, Any] = {
    "command": "train-graph",
    "settings": {
        "graph": {"kind": "random-sparse", "nodes": 20, "feature_size": 8},
        "model": {"width": 8, "latent_size": 8},
        "learner": {"batch_size": 16, "epochs": 0.01, "min_steps": 6},
        "compile": "off",
    },
    "families": {"euclidean": {}},
    "axis": {"graph.fraction": [0.5]},
    "seeds": [0],
}


def tiny(base: dict[str, Any] = TINY, **changes: Any) -> Study:
    return Study("tiny", StudySettings.from_values(base | changes, "tiny"))


class InlineBackend(Backend):
    """Runs jobs in this process."""

    def __init__(self) -> None:
        super().__init__(1, 1)
        self.attempted: list[Job] = []

    def _run(self, job: Job) -> str | None:
        self.attempted.append(job)
        return attempt(job)


def swept(plan: Study, path: Path, source: Path | None = None) -> list[Job]:
    """Sweep a study in this process; returns the jobs that it attempted."""
    with InlineBackend() as backend:
        sweep(plan, StudyFolder(path), backend, source=None if source is None else StudyFolder(source))
    return backend.attempted


def timeless_rows(folder: Path) -> list[RunRow]:
    """The rows of results.csv without the time, which differs."""
    return [row.model_copy(update={"seconds": None}) for row in read_rows(folder / "results.csv")]
