import json
import sys
from pathlib import Path

import pytest

import qrl
from qrl.agents.runs.record import RunRecord, relative_path
from qrl.common.errors import FileError


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    record = RunRecord(tmp_path / "run.json")
    record.write({"command": "train-agent", "num_steps": 3})
    return record


def test_a_new_record_names_the_versions(record: RunRecord) -> None:
    facts = record.read()
    assert (facts["command"], facts["num_steps"]) == ("train-agent", 3)
    assert facts["versions"]["qrl"] == qrl.__version__
    assert {"torch", "numpy"} <= facts["versions"].keys()
    assert "git_commit" in facts


def test_an_update_keeps_the_rest(record: RunRecord) -> None:
    before = record.read()
    record.update({"num_steps": 5})
    assert record.read() == {**before, "num_steps": 5}


def test_a_resume_is_noted_once_per_version(record: RunRecord) -> None:
    record.note_resumed(1)  # under the same versions
    assert "resumed" not in record.read()
    record.update({"versions": {"qrl": "0.1.0"}})
    record.note_resumed(2)
    record.note_resumed(3)
    assert [(entry["step"], entry["versions"]["qrl"]) for entry in record.read()["resumed"]] == [(2, qrl.__version__)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[1]", "{", "3", "null", "[" * 100_000, '{"num_steps": ' + "9" * 5000 + "}", '{"command": "\\ud800"}'),
        *('{"command": []}', '{"dataset_path": "a\\u0000b"}', '{"dataset_path": 3}', '{"num_steps": "x"}'),
        *('{"resumed": 3}', '{"resumed": [3]}', '{"extensions": {}}', '{"extensions": [null]}'),
    ],
    ids=lambda text: text[:30],
)
def test_a_damaged_file_is_named(text: str, record: RunRecord) -> None:
    record.path.write_text(text)
    for use in (record.read, lambda: record.note_resumed(1), lambda: record.update({})):
        with pytest.raises(FileError, match=r"run\.json is damaged") as caught:
            use()
        assert len(str(caught.value)) < 300
    assert record.path.read_text() == text


def test_missing_and_binary_files(record: RunRecord) -> None:
    record.path.write_bytes(b"\xff")
    with pytest.raises(FileError, match=r"run\.json is not UTF-8"):
        record.read()
    record.path.unlink()
    assert record.read() == {}


def test_nothing_is_lost_when_a_fact_cannot_be_written(record: RunRecord) -> None:
    before = record.path.read_bytes()
    with pytest.raises(TypeError):
        record.update({"num_steps": sys})
    assert record.path.read_bytes() == before
    json.loads(before)


def test_relative_paths(tmp_path: Path) -> None:
    assert relative_path(tmp_path / "data" / "d.npz", tmp_path / "runs" / "first") == "../../data/d.npz"
