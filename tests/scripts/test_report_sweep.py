"""report-sweep, on the results of a tiny sweep."""

import shutil
from pathlib import Path

import pytest

from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.studies.table import read_rows
from qrl.scripts.report_sweep import main
from tests.agents.studies.hand_made import swept, tiny

CLAIM = {"text": "IQE is better", "more": ["iqe-maxmean"], "than": ["euclidean"]}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results only to be looked at, or copied."""
    path = tmp_path_factory.mktemp("sweep") / "results"
    swept(tiny(families={"iqe-maxmean": {}, "euclidean": {}}, claims=[CLAIM]), path)
    return path


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "results")


def test_report_from_runs_and_from_the_table_alone(
    finished: Path, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(finished), "--out", str(tmp_path / "one")]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 runs are complete" in out
    assert "| IQE is better (success rate) | iqe-maxmean |" in out
    shutil.rmtree(copy / "runs")
    assert main([str(copy), "--out", str(tmp_path / "two")]) == 0
    for name in ("report.md", "summary.csv", "figure.png", "figure.pdf", "figure.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    (copy / "results.csv").unlink()
    assert main([str(copy)]) == 2
    assert "neither runs nor results.csv" in capsys.readouterr().err


def test_runs_that_are_gone_are_named(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (copy / "results.csv").read_bytes()
    shutil.rmtree(copy / "runs" / "euclidean__5__seed0")
    assert main([str(copy)]) == 2
    lost = "the results of 1 finished run, such as euclidean__5__seed0, would be lost"
    assert f"{lost}; put them back" in capsys.readouterr().err
    assert (copy / "results.csv").read_bytes() == before


def test_a_failed_run_and_an_undecided_claim_are_reported(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "results.csv").unlink()
    (copy / "runs" / "euclidean__5__seed0" / "evaluation.json").unlink()
    (copy / "failed").mkdir()
    (copy / "failed" / "euclidean__5__seed0.json").write_text('{"error": "no memory"}')
    assert main([str(copy)]) == 0
    out = capsys.readouterr().out
    assert "**1 run failed**, so that some means are over fewer seeds: euclidean__5__seed0 (no memory)." in out
    assert "**no data**" in out


PLUGIN = """
from qrl.agents.evaluation.metrics import register_metric

@register_metric("luck.mean", title="luck", help="how lucky it was", digits=1)
def luck(measurements):
    return 7.25
"""


def test_a_plugins_metric_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lucky_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    results, before = tmp_path / "results", list(METRICS)
    try:
        import lucky_plugin  # type: ignore[import-not-found]  # noqa: F401

        swept(tiny(), results)
        assert main([str(results), "--plugin", "lucky_plugin"]) == 0
        assert "| luck |" in capsys.readouterr().out
        assert {row.scores["luck_mean"] for row in read_rows(results / "results.csv")} == {7.25}
    finally:
        METRICS[:] = before
    table = (results / "results.csv").read_bytes()
    assert main([str(results)]) == 2
    assert "has the column luck_mean, which is not a registered metric" in capsys.readouterr().err
    assert (results / "results.csv").read_bytes() == table
