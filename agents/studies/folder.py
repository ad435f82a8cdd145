"""The results of a study on disk: its plan, its datasets, a training run per point of the grid, and a table."""

import json
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from qrl.agents.errors import RunError
from qrl.agents.evaluation.metric import Value
from qrl.agents.studies.study import PlannedRun, Study
from qrl.common.config_files import dump_yaml
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, check_path, is_file, read_text
from qrl.common.json_text import parse_json
from qrl.common.locks import LOCK, locked

EVALUATION = "evaluation.json"


class StudyFolder:
    def __init__(self, path: str | Path) -> None:
        self.path = check_path(path)
        self.study = self.path / "study.yaml"
        self.results = self.path / "results.csv"
        self.curves = self.path / "curves.csv"

    def check(self, study: Study) -> None:
        """Refuse a folder that holds anything but results of the same study."""
        if self.study.is_file():
            if self.has_runs:  # otherwise nothing has been computed yet, and the plan may still change
                study.check_grown_from(self.read_study(), str(self.path))
            if self.earlier.study.is_file():
                study.check_grown_from(self.earlier.read_study(), str(self.earlier.path))
        elif self.path.exists() and (not self.path.is_dir() or any(file.name != LOCK for file in self.path.iterdir())):
            raise RunError(f"{self.path} exists and holds no study; name another folder with out=...")

    def open(self, study: Study) -> None:
        """Create the folder for `study`, or continue one that holds results of the same study: see `check`."""
        with atomic_write(self.study) as file:
            file.write(dump_yaml(study.resolved).encode())

    # Results taken over from another folder of the study, such as a published one

    @property
    def earlier(self) -> "StudyFolder":
        """The tables taken over: their finished runs are not computed again, unless they have a folder here."""
        return StudyFolder(self.path / "earlier")

    def check_results(self, study: Study) -> None:
        """Refuse a folder to take results over from that holds none, or those of another study."""
        for path in (self.study, self.results):
            if not path.is_file():
                raise RunError(f"--from {self.path} holds no results of a study: it has no {path.name}")
        study.check_grown_from(self.read_study(), f"--from {self.path}", "--from ")

    def take_over(self, source: "StudyFolder") -> None:
        """Copy the tables of `source`, which `check_results` accepts."""
        paths = [path for path in (source.curves, source.results, source.study) if path.is_file()]
        texts = {path.name: read_text(path, 2**28) for path in paths}  # all of them, before any is replaced
        for name, text in texts.items():
            with atomic_write(self.earlier.path / name) as file:
                file.write(text.encode())

    def read_study(self) -> Study:
        if not is_file(self.study):
            raise RunError(f"{self.path} holds no study: it has no study.yaml")
        return Study.load(str(self.study), [])

    def lock(self) -> AbstractContextManager[None]:
        """Keep a second sweep out."""
        return locked(self.path, RunError)

    # Datasets, each shared by the runs of all families, and the scores of the references on them

    def dataset(self, run: PlannedRun) -> Path:
        return self.path / "data" / f"{run.data_name}.npz"

    def references(self, run: PlannedRun) -> Path:
        return self.path / "data" / f"{run.data_name}.json"

    def read_references(self, run: PlannedRun) -> dict[str, dict[str, Value]]:
        path = self.references(run)
        if not path.is_file():
            return {}
        try:
            return TypeAdapter(dict[str, dict[str, Value]]).validate_json(read_text(path))
        except ValidationError:
            raise FileError(f"{path} is damaged; delete it, and the next sweep computes it again") from None

    # Runs

    @property
    def has_runs(self) -> bool:
        runs = self.path / "runs"
        return runs.is_dir() and any(runs.iterdir())

    def run(self, run: PlannedRun) -> Path:
        return self.path / "runs" / run.name

    def evaluation(self, run: PlannedRun) -> Path:
        """The results of a finished run."""
        return self.run(run) / EVALUATION

    # Failures

    def failure(self, run: PlannedRun) -> str | None:
        """Why a run failed, if the last sweep gave it up."""
        path = self._failure(run)
        if not path.is_file():
            return None
        try:
            return str(parse_json(read_text(path))["error"])
        except (ValueError, KeyError, TypeError):
            raise FileError(f"{path} is damaged; delete it") from None

    def write_failure(self, run: PlannedRun, error: str | None) -> None:
        """Record why a run failed, with paths relative to this folder; None deletes the record."""
        if error is None:
            self._failure(run).unlink(missing_ok=True)
            return
        with atomic_write(self._failure(run)) as file:
            text = error.replace(f"{self.path.absolute()}/", "")
            file.write(json.dumps({"run": run.name, "error": text}, indent=2).encode())

    def _failure(self, run: PlannedRun) -> Path:
        return self.path / "failed" / f"{run.name}.json"
