"""A short storm, and that a storm notices what goes wrong."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from qrl.common.errors import UserError
from tests.storm.files import LONG_ERROR, OTHER, REFUSED, UNHARMED, Worker, mutated
from tests.storm.kinds import Kind, Use
from tests.storm.mutations import BYTES, truncate
from tests.storm.report import Outcome, Tally, Verdict
from tests.storm.states import difference, end_state

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the storm reads /proc")


def python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, because those that pytest runs in have threads and must not be forked."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)


@linux
def test_a_short_storm(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Before\n<!-- storm -->\nold\n<!-- end of storm -->\nafter\n")
    sizes = ["--kills", "8", "--console-kills", "0", "--disks", "2", "--files", "60"]
    storm = python("-m", "tests.storm", *sizes, "--folder", str(tmp_path / "storm"), "--out", str(page))
    assert storm.returncode == 0, storm.stderr
    assert storm.stdout.strip() in page.read_text()
    totals = re.findall(r"\| \*\*all\*\* \| ([\d,]+) \| ([\d,]+) \|", page.read_text())
    assert all(tried == survived for tried, survived in totals)
    assert int(totals[0][0]) >= 7
    assert int(totals[-1][0]) >= 60
    assert page.read_text().startswith("# Before\n<!-- storm -->\n")
    assert page.read_text().endswith("<!-- end of storm -->\nafter\n")


ATOMIC = """
import sys
from pathlib import Path
from qrl.common.files import atomic_write
from tests.storm.operations import Operations

folder = Path(sys.argv[1])
torn = None if sys.argv[3] == "-" else int(sys.argv[3])
Operations(folder, folder.parent / "log", at=int(sys.argv[2]), torn=torn).install()
with atomic_write(folder / "file") as file:
    file.write(bytes(100))
"""


@linux
@pytest.mark.parametrize(
    ("at", "torn", "sizes"), [(0, "-", [3]), (2, "-", [3, 100]), (2, "7", [3, 41]), (99, "-", [100])]
)
def test_a_process_ends_before_its_nth_operation(tmp_path: Path, at: int, torn: str, sizes: list[int]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"old")
    ended = python("-c", ATOMIC, str(folder), str(at), torn)
    assert ended.returncode == (0 if at == 99 else -signal.SIGKILL), ended.stderr
    assert sorted(path.stat().st_size for path in folder.iterdir()) == sizes
    operations = (tmp_path / "log").read_text().split("\n")[:-1] if (tmp_path / "log").exists() else []
    verbs = ["mkdir", "open", "fsync", "chmod", "rename", "remove"]
    assert [line.split()[0] for line in operations] == (verbs if at == 99 else verbs[:at])


def accepted() -> object:
    return Path("file").read_bytes()


def unaffected() -> object:
    return 1


def refused() -> object:
    if accepted() != b"the content of a file":
        raise UserError("file is damaged")
    return 1


def refused_at_length() -> object:
    return 1 if accepted() == b"the content of a file" else _refuse("x" * (LONG_ERROR + 1))


def crashed() -> object:
    return 1 if accepted() == b"the content of a file" else 1 / 0


def destroyed() -> object:
    if accepted() == b"the content of a file":
        return 1
    Path("metrics.csv").unlink()
    return _refuse("file is damaged")


def _refuse(message: str) -> object:
    raise UserError(message)


def greedy() -> object:
    return (
        1 if accepted() == b"the content of a file" else len(b"\1" * 400_000_000)
    )  # far more than is reclaimed meanwhile


@linux
@pytest.mark.parametrize(
    ("use", "hashed", "verdict", "detail"),
    [
        (unaffected, True, Verdict.SURVIVED, UNHARMED),
        (refused, True, Verdict.SURVIVED, REFUSED),
        (accepted, False, Verdict.SURVIVED, OTHER),
        (accepted, True, Verdict.WRONG, OTHER),
        (refused_at_length, True, Verdict.LONG, " characters: xxx"),
        (crashed, True, Verdict.TRACEBACK, "ZeroDivisionError"),
        (destroyed, True, Verdict.LOST, "a refusal changed folder/metrics.csv"),
        (greedy, False, Verdict.BIG, "bytes"),
    ],
)
def test_what_becomes_of_a_damaged_file(
    use: Use, hashed: bool, verdict: Verdict, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.storm.files.BYTES", 20_000_000)
    for folder in ("specimens/folder", "work"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "specimens/folder/file").write_bytes(b"the content of a file")
    (tmp_path / "specimens/folder/metrics.csv").write_text("step\n")
    kind = Kind("kind", "folder/file", [truncate], (use,), 1, hashed)
    found, text = Worker(0, tmp_path / "specimens", tmp_path / "work").judge(kind, 10)
    assert found == verdict
    assert detail in text


@pytest.mark.parametrize("mutation", BYTES)
def test_damage_is_repeatable(mutation: Callable[..., bytes]) -> None:
    kind = Kind("kind", "file", [mutation], (unaffected,), 1)
    data = bytes(range(200))
    damaged = [mutated(0, kind, number, data)[1] for number in range(20)]
    assert damaged == [mutated(0, kind, number, data)[1] for number in range(20)]
    assert len(set(damaged)) > 3
    assert damaged != [mutated(1, kind, number, data)[1] for number in range(20)]


def test_end_states(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / "metrics.csv").write_text("step,steps_per_second\n1,5\n")
    (tmp_path / "COMPLETE").write_text('{"step": 1, "cpu_seconds": 2}')
    state = end_state(tmp_path)
    assert sorted(state) == ["COMPLETE", "metrics.csv"]
    (tmp_path / "metrics.csv").write_text("step,steps_per_second\n1,6\n")
    assert difference(end_state(tmp_path), state) == ""
    (tmp_path / "metrics.csv").write_text("step,steps_per_second\n2,5\n")
    (tmp_path / "COMPLETE").rename(tmp_path / "other")
    assert difference(end_state(tmp_path), state) == "missing: COMPLETE; left over: other; different: metrics.csv"


def test_the_table() -> None:
    tally = Tally("kills")
    tally.add(Outcome("kill:0", "at start", Verdict.SURVIVED, "by SIGKILL", tried=3))
    tally.add(Outcome("kill:1", "at start", Verdict.LOST, "why"))
    tally.add(Outcome("disk:0", "full disk", Verdict.SKIPPED))
    assert tally.markdown().splitlines()[2:] == [
        "| at start | 4 | 3 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |",
        "| full disk | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |",
        "| **all** | 4 | 3 | 1 | 0 | 0 | 0 | 0 | 0 | 1 |",
    ]
    assert tally.details() == "1 by SIGKILL"
    assert [outcome.case for outcome in tally.failures] == ["kill:1"]
