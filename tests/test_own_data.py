"""The code and the commands of docs/own-data.md run as they stand, and print what the page says."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "own-data.md"


def masked(line: str) -> str:
    """Without its numbers, which rounding changes from machine to machine, and without alignment."""
    return re.sub(r"\d[\d.,]*", "#", " ".join(line.split()))


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```\n(?:\n```\n(.*?)^```)?", PAGE.read_text(), re.M | re.S)
    assert [language for language, *_ in blocks] == ["python", "sh", "sh", "sh", "sh"]
    for language, code, expected in blocks:
        if language == "python":
            exec(compile(code, str(PAGE), "exec"), {})
        for line in code.splitlines() if language == "sh" else []:
            name, *arguments = shlex.split(line)
            main = import_module(f"qrl.scripts.{name.replace('-', '_')}").main
            assert main(arguments) == 0, capsys.readouterr().err
        printed = [masked(line) for line in capsys.readouterr().out.splitlines()]
        assert [masked(line) for line in expected.splitlines() if masked(line) not in printed] == []
    assert "triangle violations" in (tmp_path / "report.html").read_text()
