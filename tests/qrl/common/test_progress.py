"""Progress with and without a terminal, on a clock set by hand."""

import subprocess
import sys

import pytest

from qrl.common.progress import Progress


def test_a_plain_line_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with Progress(10, 2, "runs", clock=lambda: now) as progress:

        def line_at(seconds: float) -> str:
            nonlocal now
            now = seconds
            progress.tick()
            captured = capsys.readouterr()
            assert captured.out == ""
            return captured.err

        assert progress.timeout == 30
        assert line_at(29) == ""
        assert progress.timeout == pytest.approx(1)
        assert line_at(30) == "2 of 10 runs; time left unknown\n"
        progress.update(3, {"failed": 0})
        progress.update(4, {"failed": 1})
        assert line_at(59) == ""
        # Two runs in a minute: six more take three.
        assert line_at(60) == "4 of 10 runs, failed 1; about 3.0 minutes left\n"
        assert line_at(61) == ""


def test_only_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    now = 0.0
    with Progress(10, 2, "runs", clock=lambda: now) as progress:
        assert progress.timeout is None
        progress.update(5, {"failed": 1})
        now = 100
        progress.tick()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "2/10" in captured.err
    assert "5/10" in captured.err
    assert "failed=1" in captured.err
    assert "5 of 10" not in captured.err


def test_no_torch() -> None:
    program = "import sys, qrl.common.progress; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
