from pathlib import Path

import pytest

from qrl.agents.errors import RunError
from qrl.agents.runs.run import Run
from tests.agents.worlds import corridor, small_settings


def test_an_existing_folder_is_refused_before_data_is_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Run.start(small_settings(tmp_path / "run"))

    def collect(*_: object) -> None:
        raise AssertionError("data was collected")

    monkeypatch.setattr("qrl.agents.runs.problems.OfflineRL.collect", collect)
    with pytest.raises(RunError, match=r"holds a training run; .*--force"):
        Run.start(small_settings(tmp_path / "run"))
    with pytest.raises(RunError, match=r"absent is not a training run"):
        Run.start(small_settings(tmp_path / "new"), init=tmp_path / "absent")


def test_force_does_not_delete_the_data_of_the_new_run(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    data = run.path / "dataset.npz"
    with pytest.raises(RunError, match=r"--force would delete .*dataset\.npz"):
        Run.start(small_settings(tmp_path / "run", dataset=str(data)), force=True)
    assert data.is_file()
    corridor(5).save(tmp_path / "d.npz")
    Run.start(small_settings(tmp_path / "run", dataset=str(tmp_path / "d.npz")), force=True)
    assert not data.exists()


def test_a_run_that_appears_meanwhile_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = Run.prepare.__func__  # type: ignore[attr-defined]

    def prepare_slowly(cls: type[Run], *arguments: object) -> Run:
        monkeypatch.setattr(Run, "prepare", classmethod(prepare))
        Run.start(small_settings(tmp_path / "run", seed=5))  # as another process would
        run: Run = prepare(cls, *arguments)
        return run

    monkeypatch.setattr(Run, "prepare", classmethod(prepare_slowly))
    with pytest.raises(RunError, match="holds a training run"):
        Run.start(small_settings(tmp_path / "run", seed=3))
    assert Run.open(tmp_path / "run").settings.seed == 5
