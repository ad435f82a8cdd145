"""What backends share, and how runs travel to other machines."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

from qrl.agents.runs.run import Run
from qrl.agents.studies.backends import LokyBackend, pack, remote_attempt, split_cores, unpack
from qrl.agents.studies.folder import EVALUATION
from qrl.agents.studies.scoring import SCORERS
from qrl.agents.studies.worker import Job, attempt
from qrl.common.errors import ConfigError
from tests.agents.studies.hand_made import tiny


@pytest.mark.parametrize(
    ("cores", "jobs", "expected"), [(8, None, (8, 1)), (8, 3, (3, 2)), (2, 5, (5, 1)), (1, None, (1, 1))]
)
def test_cores_are_split_among_jobs(cores: int, jobs: int | None, expected: tuple[int, int]) -> None:
    assert split_cores(cores, jobs) == expected


class ToyExecutor:
    """Records how it is shut down."""

    def __init__(self) -> None:
        self.killed: list[bool] = []

    def shutdown(self, wait: bool, kill_workers: bool) -> None:
        self.killed.append(kill_workers)


def test_workers_are_killed_only_by_an_interruption() -> None:
    for error in (None, KeyboardInterrupt()):
        executor = ToyExecutor()
        with suppress(KeyboardInterrupt), LokyBackend(1) as backend:
            backend._executors.append(executor)
            if error is not None:
                raise error
        assert executor.killed == [error is not None]


def test_files_travel(tmp_path: Path) -> None:
    (tmp_path / "one" / "sub").mkdir(parents=True)
    (tmp_path / "one" / "sub" / "a").write_bytes(b"a")
    (tmp_path / "one" / ".lock").touch()
    files = pack(tmp_path / "one")
    assert files == {"sub/a": b"a"}
    unpack(files, tmp_path / "two")
    assert pack(tmp_path / "two") == files
    assert pack(tmp_path / "missing") == {}
    with pytest.raises(ConfigError, match="outside of its run"):
        unpack({"../b": b"b"}, tmp_path / "two")
    assert not (tmp_path / "b").exists()


def test_the_marks_of_a_run_are_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    @contextmanager
    def record(path: Path) -> Iterator[IO[bytes]]:
        written.append(path.name)
        yield io.BytesIO()

    monkeypatch.setattr("qrl.agents.studies.backends.atomic_write", record)
    unpack(dict.fromkeys([EVALUATION, "config.yaml", "run.json"], b""), tmp_path)
    assert written == ["run.json", "config.yaml", EVALUATION]


def test_a_run_elsewhere_is_as_one_here(tmp_path: Path) -> None:
    planned = tiny().runs[0]
    dataset = tmp_path / "data" / "corridor.npz"
    tiny().settings.kind.problem.collect(planned.settings).save(dataset)

    def job(run: Path) -> Job:
        paths = {"run": str(run), "dataset": str(dataset), "threads": 1}
        return Job("train-agent", planned.settings.model_dump() | paths)

    here, travelled = tmp_path / "runs" / "here", tmp_path / "runs" / "travelled"
    assert attempt(job(here)) is None
    error, files = remote_attempt(job(travelled), dataset.read_bytes(), {})
    assert error is None
    # A second time, with what the first has left: it is resumed, and nothing is to be done.
    error, again = remote_attempt(job(travelled), dataset.read_bytes(), files)
    assert error is None
    assert again["checkpoint.safetensors"] == files["checkpoint.safetensors"]
    unpack(again, travelled)
    settings = Run.open(travelled).settings
    assert (settings.run, settings.dataset) == (str(travelled), str(dataset))
    assert json.loads((travelled / "run.json").read_text())["dataset_path"] == "../../data/corridor.npz"
    scores = [SCORERS["train-agent"].read(run / EVALUATION) for run in (here, travelled)]
    assert scores[0] == scores[1]
