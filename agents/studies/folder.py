"""The results of a study on disk: its plan, its datasets, a training run for each point of the grid, and a table."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from qrl.agents.errors import RunError
from qrl.agents.runs.run_folder import RunFolder
from qrl.agents.studies.kinds import Numbers
from qrl.agents.studies.study import PlannedRun, Study
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_text
from qrl.common.settings import dump_yaml

EVALUATION = "evaluation.json"
LOCK = ".lock"


class StudyFolder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.study = self.path / "study.yaml"
        self.results = self.path / "results.csv"

    def check(self, study: Study) -> None:
        """Refuse a folder that holds anything but results of the same study."""
        if self.study.is_file():
            if self.has_runs:  # else nothing has been computed yet, and a mistake may be mended
                study.check_grown_from(self.read_study(), str(self.path))
        elif self.path.exists() and (not self.path.is_dir() or any(each.name != LOCK for each in self.path.iterdir())):
            raise RunError(f"{self.path} exists and holds no study; name another folder with out=...")

    def open(self, study: Study) -> None:
        """Make the folder for `study`, or go on with what it holds of the same study."""
        self.check(study)
        with atomic_write(self.study) as file:
            file.write(dump_yaml(study.resolved).encode())

    def read_study(self) -> Study:
        if not self.study.is_file():
            raise RunError(f"{self.path} holds no study: it has no study.yaml")
        return Study.load(str(self.study), [])

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep a second sweep out."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RunError(f"{self.path} is in use by another sweep") from None
            yield

    # Datasets, each shared by the runs of all families, and what the references reach on it

    def dataset(self, run: PlannedRun) -> Path:
        return self.path / "data" / f"{run.data_name}.npz"

    def references(self, run: PlannedRun) -> Path:
        return self.path / "data" / f"{run.data_name}.json"

    # Runs

    @property
    def has_runs(self) -> bool:
        return (self.path / "runs").is_dir()

    def run(self, run: PlannedRun) -> RunFolder:
        return RunFolder(self.path / "runs" / run.name)

    def evaluation(self, run: PlannedRun) -> Path:
        """Where the results of a finished run are."""
        return self.run(run).path / EVALUATION

    def failure(self, run: PlannedRun) -> str | None:
        """Why a run failed, if the last sweep gave it up."""
        path = self._failure(run)
        if not path.is_file():
            return None
        try:
            return str(json.loads(read_text(path))["error"])
        except (ValueError, KeyError, TypeError):
            raise FileError(f"{path} is damaged; delete it") from None

    def write_failure(self, run: PlannedRun, error: str | None) -> None:
        """Keep the reason of a failure, or forget it with None."""
        if error is None:
            self._failure(run).unlink(missing_ok=True)
            return
        with atomic_write(self._failure(run)) as file:
            file.write(json.dumps({"run": run.name, "error": error}, indent=2).encode())

    def _failure(self, run: PlannedRun) -> Path:
        return self.path / "failed" / f"{run.name}.json"

    def read_references(self, run: PlannedRun) -> dict[str, Numbers]:
        path = self.references(run)
        if not path.is_file():
            return {}
        try:
            return TypeAdapter(dict[str, Numbers]).validate_json(read_text(path))
        except ValidationError:
            raise FileError(f"{path} is damaged; delete it, and the next sweep makes it again") from None
