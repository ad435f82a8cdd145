import sys
from pathlib import Path

import pytest

from qrl.common.imports import search_working_directory


def test_the_working_directory_is_searched_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["first"])
    search_working_directory()
    search_working_directory()
    assert sys.path == ["first", str(tmp_path)]


def test_where_python_searches_it_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "first"])
    search_working_directory()
    assert sys.path == ["", "first"]
