"""The progress of a sweep without a terminal, on a clock set by hand."""

import sys

import pytest

from qrl.agents.studies.progress import Progress


def test_a_plain_line_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with Progress(10, 2, clock=lambda: now) as progress:

        def line_at(seconds: float) -> str:
            nonlocal now
            now = seconds
            progress.tick()
            return capsys.readouterr().err

        assert progress.timeout == 30
        assert line_at(29) == ""
        assert progress.timeout == pytest.approx(1)
        assert line_at(30) == "2 of 10 runs done, 0 failed; time left unknown until the first run is done\n"
        progress.finished("a", None)
        progress.finished("b", "no memory\nTraceback ...")
        assert capsys.readouterr().out == "failed: b: no memory\n"
        assert line_at(59) == ""
        # Two runs in a minute: six more take three.
        assert line_at(60) == "4 of 10 runs done, 1 failed; about 3.0 minutes left\n"
        assert line_at(61) == ""


def test_on_a_terminal_there_is_a_bar_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    now = 0.0
    with Progress(10, 2, clock=lambda: now) as progress:
        assert progress.timeout is None
        now = 100
        progress.tick()
    err = capsys.readouterr().err
    assert "2/10" in err
    assert "runs done" not in err
