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
