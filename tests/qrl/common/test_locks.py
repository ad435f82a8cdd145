import errno
import os
from pathlib import Path

import pytest

from qrl.common import locks
from qrl.common.errors import ConfigError, FileError
from qrl.common.locks import locked


def test_a_folder_is_locked_once(tmp_path: Path) -> None:
    with locked(tmp_path / "new", ConfigError):
        with (
            pytest.raises(ConfigError, match="new is in use by another process"),
            locked(tmp_path / "new", ConfigError),
        ):
            pass
        with locked(tmp_path / "other", ConfigError):
            pass
    with locked(tmp_path / "new", ConfigError):
        pass


def test_an_error_releases_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path, ConfigError):
        raise ZeroDivisionError
    with locked(tmp_path, ConfigError):
        pass


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="file cannot be written"), locked(tmp_path / "file", ConfigError):
        pass
    assert os.listdir(tmp_path) == ["file"]


def test_without_fcntl_nothing_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    with locked(tmp_path, ConfigError), locked(tmp_path, ConfigError):  # with fcntl the second one is refused
        assert os.listdir(tmp_path) == [locks.LOCK]


def fail_to_lock(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", flock)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP])
def test_file_systems_without_locks(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_to_lock(code, monkeypatch)
    with locked(tmp_path, ConfigError), locked(tmp_path, ConfigError):
        assert os.listdir(tmp_path) == [locks.LOCK]


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (errno.EAGAIN, ConfigError, "is in use by another process"),
        (errno.EACCES, ConfigError, "is in use by another process"),
        (errno.EIO, FileError, "cannot be locked: Input/output error"),
    ],
)
def test_locks_that_fail(
    code: int, error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_lock(code, monkeypatch)
    with pytest.raises(error, match=message), locked(tmp_path, ConfigError):
        pass


def test_a_folder_deleted_by_its_last_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.flock", lambda *_: (tmp_path / locks.LOCK).unlink())
    with pytest.raises(ConfigError, match="is in use by another process"), locked(tmp_path, ConfigError):
        pass
