from pathlib import Path

import pytest

from qrl.agents.runs.metrics_file import MetricsFile
from qrl.common.errors import FileError

COLUMNS = ["step", "loss", "steps_per_second", "success_rate"]


@pytest.fixture
def metrics(tmp_path: Path) -> MetricsFile:
    file = MetricsFile(tmp_path / "metrics.csv")
    file.start(COLUMNS, 0)
    file.append(COLUMNS, {"step": 10, "loss": 0.5, "steps_per_second": 5})
    file.append(COLUMNS, {"step": 20, "loss": 0.25, "steps_per_second": 2, "success_rate": 1})
    return file


def test_rows(metrics: MetricsFile) -> None:
    assert metrics.path.read_text() == "step,loss,steps_per_second,success_rate\n10,0.5,5,\n20,0.25,2,1\n"
    assert metrics.last() == {"step": 20, "loss": 0.25, "steps_per_second": 2, "success_rate": 1}
    assert metrics.seconds() == 10 / 5 + 10 / 2


def test_rows_beyond_the_checkpoint_and_torn_ones_are_dropped(metrics: MetricsFile) -> None:
    with metrics.path.open("a") as file:
        file.write("1")  # torn by a kill
    metrics.start(COLUMNS, 20)
    assert metrics.path.read_text().splitlines()[1:] == ["10,0.5,5,", "20,0.25,2,1"]
    metrics.start(COLUMNS, 19)
    assert metrics.path.read_text().splitlines()[1:] == ["10,0.5,5,"]


@pytest.mark.parametrize("text", ["", "step,loss\n", "step,loss\nx,y\n"])
def test_a_damaged_file_is_named(text: str, metrics: MetricsFile) -> None:
    metrics.path.write_text(text)
    with pytest.raises(FileError, match=r"metrics\.csv is damaged"):
        metrics.last()


def test_damaged_times(metrics: MetricsFile) -> None:
    metrics.path.write_text("step,steps_per_second\n3,0\n")
    with pytest.raises(FileError, match=r"metrics\.csv is damaged"):
        metrics.seconds()


def test_a_file_that_cannot_be_written(metrics: MetricsFile) -> None:
    metrics.path.unlink()
    metrics.path.mkdir()
    with pytest.raises(FileError, match=r"metrics\.csv cannot be written"):
        metrics.append(COLUMNS, {"step": 1})


def test_other_metrics_keep_the_old_columns(metrics: MetricsFile) -> None:
    columns = metrics.start(["step", "loss", "steps_per_second", "new"], 20)
    assert columns == ["step", "loss", "steps_per_second", "new", "success_rate"]
    metrics.append(columns, {"step": 30, "loss": 1, "steps_per_second": 1, "new": 7})
    assert metrics.path.read_text().splitlines() == [",".join(columns), "10,0.5,5,,", "20,0.25,2,,1", "30,1,1,7,"]


def test_a_file_without_columns_is_refused(metrics: MetricsFile) -> None:
    for text in ("loss,x\n1,2\n", "", "step,step\n1,2\n", 'step,"' + "x" * 200_000):
        metrics.path.write_text(text)
        with pytest.raises(FileError, match=r"metrics\.csv is damaged: its first line must name its columns"):
            metrics.start(COLUMNS, 20)


UNREADABLE = [
    "1",
    "many,0.5,5,",
    "20,x,5,",
    "20,0.5,5,,,",
    "-20,1,1,",
    '20,"0.5',
    "\0",
    "20," + "1" * 200_000,
]


@pytest.mark.parametrize("line", UNREADABLE)
def test_unreadable_lines(line: str, metrics: MetricsFile) -> None:
    """Dropped after the rows up to the checkpoint, an error before or among them."""
    first, *rows = metrics.path.read_text().splitlines()
    metrics.path.write_text("\n".join([first, *rows, line, "30,1,1,1"]))
    with pytest.raises(FileError, match=r"metrics\.csv is damaged: line 4 cannot be read"):
        metrics.last()
    with pytest.raises(FileError, match=r"metrics\.csv is damaged: not all rows up to step 30 can be read"):
        metrics.start(COLUMNS, 30, 10)
    with pytest.raises(FileError, match=r"metrics\.csv is damaged: not all rows up to step 29 can be read"):
        metrics.start(COLUMNS, 29, 5)  # the line may be that of step 25
    assert line in metrics.path.read_text()
    metrics.start(COLUMNS, 29, 10)
    assert metrics.path.read_text().splitlines() == [first, *rows]


@pytest.mark.parametrize("step", [20, 9])
def test_rows_out_of_order_are_not_dropped(step: int, metrics: MetricsFile) -> None:
    text = metrics.path.read_text() + f"{step},0.5,5,\n"
    metrics.path.write_text(text)
    with pytest.raises(FileError, match=rf"metrics\.csv is damaged: step {step} comes after step 20"):
        metrics.start(COLUMNS, 29, 10)
    assert metrics.path.read_text() == text


def test_a_run_at_its_start_needs_no_rows(metrics: MetricsFile) -> None:
    metrics.path.write_text("nonsense")
    assert metrics.start(COLUMNS, 0) == COLUMNS
    assert metrics.path.read_text() == ",".join(COLUMNS) + "\n"
