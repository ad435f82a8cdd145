"""curves.csv: the evaluations of finished runs."""

from pathlib import Path

import pytest

from qrl.agents.runs.metrics_file import MetricsFile
from qrl.agents.studies.curves import read_curves
from qrl.common.errors import FileError
from tests.agents.studies.hand_made import TINY, swept, tiny


def test_a_sweep_leaves_its_curves(tmp_path: Path) -> None:
    settings = TINY["settings"] | {"evaluate_every": 4, "checkpoint_every": 6}
    swept(tiny(settings=settings, seeds=[0, 1]), tmp_path)
    rows = read_curves(tmp_path / "curves.csv")
    assert [(row["family"], row["value"], row["seed"], row["step"]) for row in rows] == [
        ("iqe-maxmean", "5", seed, step) for seed in "01" for step in "46"
    ]
    logged = MetricsFile(tmp_path / "runs" / "iqe-maxmean__5__seed0" / "metrics.csv")
    assert float(rows[1]["seconds"]) == pytest.approx(logged.seconds(), abs=0.01)
    assert float(rows[1]["success_rate"]) == logged.last()["success_rate"]


def test_seconds_add_up(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,steps_per_second,success_rate\n10,5,\n20,2,0.5\n30,10,0.75\n")
    assert [(row["step"], row["seconds"]) for row in MetricsFile(path).evaluations("success_rate")] == [
        ("20", "7.00"),
        ("30", "8.00"),
    ]
    assert MetricsFile(path).seconds() == 8


def test_seconds_are_processor_time_where_it_is_known(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,steps_per_second,cpu_seconds\n10,5,\n20,2,1.5\n30,10,0.25\n")
    assert MetricsFile(path).seconds() == 2 + 1.5 + 0.25


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    path.write_text("run,step\na,1\n")
    with pytest.raises(FileError, match=r"curves.csv: the first line must name the columns family, choice"):
        read_curves(path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("dot,,,5,0,x,1.5,0.5", r"line 2: step: 'x' is not a number"),
        ("dot,,,5,0,10,1.5,much", r"line 2: success_rate: 'much' is not a number"),
        ("dot,,,5,0,10,1.5", r"line 2: the number of columns is not that of the first line"),
    ],
)
def test_damaged_curves_are_refused(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "curves.csv"
    path.write_text(f"family,choice,world,value,seed,step,seconds,success_rate\n{row}\n")
    with pytest.raises(FileError, match=message):
        read_curves(path)
