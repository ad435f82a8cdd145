import errno
import os
from pathlib import Path
from typing import Any

import pytest

from qrl.common.errors import FileError
from qrl.common.files import (
    atomic_write,
    check_output,
    check_path,
    is_file,
    read_csv,
    read_text,
    regular_file,
    write_csv,
)


def test_a_file_appears_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.bin"
    with atomic_write(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and whole")
    assert path.read_bytes() == b"half and whole"
    assert os.listdir(path.parent) == ["file.bin"]


def test_open_readers_keep_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        with atomic_write(path) as file:
            file.write(b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"


def test_a_failure_leaves_only_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(path) as file:
        file.write(b"new" * (1 // (file.write(b"half") - 4)))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "atomic") as file:
        file.write(b"x")
    (tmp_path / "ordinary").write_bytes(b"x")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_unwritable_paths(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match="cannot be written"), atomic_write(tmp_path / "file" / "out.bin") as file:
        file.write(b"x")


def test_check_output(tmp_path: Path) -> None:
    existing = tmp_path / "there.npz"
    existing.write_text("x")
    (tmp_path / "folder.npz").mkdir()
    assert check_output(tmp_path / "new" / "x.npz", ".npz") == tmp_path / "new" / "x.npz"
    assert not (tmp_path / "new").exists()
    assert check_output(existing, ".npz", force=True) == existing
    for path, message in [
        (existing, r"there\.npz exists already; .* --force"),
        (tmp_path / "x.txt", r"must end in \.npz"),
        (tmp_path / "folder.npz", "is a folder"),
        (existing / "below.npz", "is not a folder"),
    ]:
        with pytest.raises(FileError, match=message):
            check_output(path, ".npz")


def test_check_output_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda folder, mode: False)  # root may write everywhere
    with pytest.raises(FileError, match="no permission"):
        check_output(tmp_path / "x.npz", ".npz")


@pytest.mark.parametrize("name", ["x.npz", "sub/x.npz"])
def test_check_output_in_a_folder_that_may_not_be_searched(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = os.stat

    def stat(path: Path, **options: Any) -> os.stat_result:  # root may search everywhere
        if tmp_path in Path(path).parents:
            raise PermissionError(errno.EACCES, "Permission denied")
        return found(path, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "access", lambda folder, mode: False)
    with pytest.raises(FileError, match=r"x\.npz cannot be written: .*[Pp]ermission"):
        check_output(tmp_path / name, ".npz")


def test_read_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("grün".encode())
    assert read_text(path) == "grün"
    path.write_bytes(b"\xff")
    with pytest.raises(FileError, match="is not UTF-8 text"):
        read_text(path)
    path.write_bytes(b"x" * 11)
    with pytest.raises(FileError, match="larger than 10 bytes"):
        read_text(path, max_bytes=10)
    with pytest.raises(FileError, match="No such file"):
        read_text(tmp_path / "absent")


IMPOSSIBLE = {
    "NUL": ("a\0b.yaml", "contains a NUL character"),
    "surrogate": ("\ud800", "contains invalid characters"),
    "long name": ("x" * 256, "longer than a file system allows"),
    "long path": ("x/" * 2100, "longer than a file system allows"),
    "very long": ("x" * 10**6, "longer than a file system allows"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_paths(name: str, tmp_path: Path) -> None:
    path, message = IMPOSSIBLE[name]
    for refuse in (check_path, regular_file, read_text, lambda path: check_output(path, ".npz")):
        with pytest.raises(FileError, match=message) as caught:
            refuse(tmp_path / path)
        assert len(str(caught.value)) < 300
    with pytest.raises(FileError, match=message), atomic_write(tmp_path / path):
        pass
    assert not is_file(tmp_path / path)
    assert os.listdir(tmp_path) == []


def test_possible_paths(tmp_path: Path) -> None:
    name = "ü" * 127
    with atomic_write(tmp_path / "file") as file:
        file.write(b"text")
    (tmp_path / "file").rename(tmp_path / name)
    assert check_path(str(tmp_path / name)) == tmp_path / name
    assert check_path("caf\udce9") == Path("caf\udce9")  # bytes that are not UTF-8, as Python represents them
    assert regular_file(tmp_path / name).read_text() == read_text(tmp_path / name) == "text"
    (tmp_path / "link").symlink_to(tmp_path / name)
    assert read_text(tmp_path / "link") == "text"


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path, kind in [
        (tmp_path, "a folder"),
        (tmp_path / "fifo", "a device, pipe or socket"),
        (tmp_path / "link", "a device, pipe or socket"),
        (Path("/dev/zero"), "a device, pipe or socket"),
    ]:
        with pytest.raises(FileError, match=f"cannot be read: it is {kind}, not a file"):
            read_text(path)


def test_written_csv_files_are_read_back(tmp_path: Path) -> None:
    write_csv(tmp_path / "table.csv", [["a", "b"], [1, "x\ny"]])
    assert read_csv(tmp_path / "table.csv")[:2] == (["a", "b"], [{"a": "1", "b": "x\ny"}])


def test_csv_files(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('a,b\n1,"x\ny"\n2\n')
    assert read_csv(path) == (["a", "b"], [{"a": "1", "b": "x\ny"}, {"a": "2", "b": None}], [3, 4])
    path.write_text("")
    assert read_csv(path) == ([], [], [])
    path.write_text("a,b\n1,2\n" + "x" * 200_000)
    with pytest.raises(FileError, match=r"table\.csv is damaged near line 3: field larger"):
        read_csv(path)
