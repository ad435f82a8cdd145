import subprocess
import sys
from pathlib import Path

import pytest

from qrl.agents.errors import RunError
from qrl.agents.runs.run import Run
from qrl.common.locks import locked
from tests.agents.runs.running import checkpoint_bytes, finish
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


@pytest.mark.parametrize("call", range(1, 5))
def test_a_killed_start_is_started_again(call: int, tmp_path: Path) -> None:
    """Killed at the moment when the dataset, the record, the checkpoint or the config would appear in the folder."""
    settings = small_settings(tmp_path / "run", collector={"layout": "corridor", "trajectories": 5})
    (tmp_path / "settings.json").write_text(settings.model_dump_json())
    subprocess.run([sys.executable, "-c", KILLED_START, str(call)], cwd=tmp_path, check=False)
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert "config.yaml" not in left
    assert [name for name in left if name.endswith(".tmp")]
    finish(Run.start(settings))
    finish(Run.start(small_settings(tmp_path / "undisturbed", collector=settings.collector.model_dump())))
    assert checkpoint_bytes(tmp_path / "run") == checkpoint_bytes(tmp_path / "undisturbed")
    assert not list((tmp_path / "run").rglob(".*.tmp"))


KILLED_START = """
import os, signal, sys
from pathlib import Path
from qrl.agents.runs.run import Run
from qrl.agents.runs.settings import TrainSettings

replace, calls = os.replace, []

def killed(*paths):
    calls.append(paths)
    if len(calls) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*paths)

os.replace = killed
Run.start(TrainSettings.model_validate_json(Path("settings.json").read_text()))
"""


def test_other_folders_are_not_taken_for_half_made_runs(tmp_path: Path) -> None:
    """Not even that of a study, which has a lock, too."""
    settings = small_settings(tmp_path / "run")
    (tmp_path / "run").mkdir()
    for name in (".lock", "study.yaml"):
        (tmp_path / "run" / name).touch()
    for force in (False, True):
        with pytest.raises(RunError, match="exists and is not a training run"):
            Run.start(settings, force=force)
    (tmp_path / "run" / "study.yaml").rename(tmp_path / "run" / "dataset.npz")
    (tmp_path / "run" / ".lock").unlink()
    with pytest.raises(RunError, match="exists and is not a training run"):
        Run.start(settings)
    assert (tmp_path / "run" / "dataset.npz").exists()


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_the_second_of_two_starts_is_told_that_the_folder_is_in_use(made: bool, force: bool, tmp_path: Path) -> None:
    settings = small_settings(tmp_path / "run")
    if made:
        Run.start(settings)
    with locked(tmp_path / "run", RunError), pytest.raises(RunError, match="run is in use by another process"):
        Run.start(settings, force=force)
    assert (tmp_path / "run" / "config.yaml").exists() is made


def test_leftovers_of_killed_writes_are_removed_by_a_resume(tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run"))
    left = [run.path / ".metrics.csv.abc.tmp", run.path / "checkpoints" / ".step-00000010.safetensors.x.tmp"]
    for file in left:
        file.parent.mkdir(exist_ok=True)
        file.touch()
    finish(Run.resume(run.path))
    assert not any(file.exists() for file in left)
