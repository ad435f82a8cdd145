"""A worker's attempt at a run."""

from pathlib import Path

import pytest

from qrl.agents.errors import RunError
from qrl.agents.runs.run import Run
from qrl.agents.studies import worker
from qrl.agents.studies.folder import EVALUATION
from qrl.agents.studies.worker import Job, attempt, check_settings
from qrl.common.locks import locked
from tests.agents.studies.hand_made import tiny


@pytest.fixture
def job(tmp_path: Path) -> Job:
    planned = tiny().runs[0]
    dataset = tmp_path / "data.npz"
    tiny().settings.kind.problem.collect(planned.settings).save(dataset)
    paths = {"run": str(tmp_path / "run"), "dataset": str(dataset), "threads": 1}
    return Job("train-agent", planned.settings.model_dump() | paths)


def test_an_orphan_saves_its_run_which_is_resumed(job: Job, tmp_path: Path) -> None:
    worker._ORPHANED.set()
    try:
        assert attempt(job) == "stopped at step 0, because the sweep has ended"
    finally:
        worker._ORPHANED.clear()
    (tmp_path / "run" / "mark").touch()  # lost if the run starts again
    assert attempt(job) is None
    assert (tmp_path / "run" / "mark").exists()
    assert (tmp_path / "run" / EVALUATION).is_file()


def test_the_remains_of_a_run_that_never_started_are_deleted(job: Job, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{")
    assert attempt(job) is None


@pytest.mark.parametrize("error", [RuntimeError("no such luck"), SystemExit(3)])
def test_whatever_is_raised_is_reported(error: BaseException, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise error

    monkeypatch.setattr(Run, "start", fail)
    first, *trace = (attempt(job) or "").splitlines()
    assert first == f"{type(error).__name__}: {error}"
    assert trace[0].startswith("Traceback")


def test_a_run_in_use_is_waited_for(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(worker, "_PATIENCE", 2)
    monkeypatch.setattr("time.sleep", waits.append)
    with locked(tmp_path / "run", RunError):
        assert attempt(job) == f"{tmp_path / 'run'} is in use by another process"
    assert len(waits) == 2
    assert attempt(job) is None


def test_other_settings_and_other_data_are_refused(job: Job, tmp_path: Path) -> None:
    assert attempt(job) is None
    settings = tiny().runs[0].settings.model_copy(update={"dataset": job.settings["dataset"]})
    check_settings(tmp_path / "run", settings)
    free = {"threads": 7, "compile": "auto", "run": "elsewhere", "dataset": "moved/data.npz"}
    check_settings(tmp_path / "run", settings.model_copy(update=free))
    with pytest.raises(RunError, match=r"seed was 0, now 1; delete it"):
        check_settings(tmp_path / "run", settings.model_copy(update={"seed": 1}))
    with pytest.raises(RunError, match=r"dataset was 'data.npz', now 'other.npz'"):
        check_settings(tmp_path / "run", settings.model_copy(update={"dataset": "other.npz"}))
