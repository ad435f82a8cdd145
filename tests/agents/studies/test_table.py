"""results.csv: its rows, their file, and how they match a plan."""

import csv
from pathlib import Path

import pytest

from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.table import check_columns, gather, matched, read_rows, summary, write_rows
from qrl.common.errors import FileError
from tests.agents.studies.hand_made import row, rows, study, swept, tiny

DOCS = Path(__file__).parents[3] / "docs"
COLUMNS = ["success_rate", "signed_error"]


def test_rows_are_matched_with_the_plan() -> None:
    planned = study().runs
    known = [
        row(run.family, int(run.condition.value), run.seed, 0.5, run.configuration, run=run.name)
        for run in planned
        if run.seed != 2
    ]
    all_rows = matched(study(), known)
    assert [run.run for run in all_rows] == [run.name for run in planned]
    assert {run.seed for run in all_rows if run.status == "missing"} == {2}
    with pytest.raises(FileError, match="twice"):
        matched(study(), [*known, known[0]])
    with pytest.raises(FileError, match="foreign is not a run of the study"):
        matched(study(), [*known, row("dot", 10, 0, 0.5, run="foreign")])


def test_rows_survive_the_file(tmp_path: Path) -> None:
    runs = [*rows(), row("dot", 10, 9, None, "a,b", status="failed", error='line "one", with a comma')]
    write_rows(runs, COLUMNS, tmp_path / "results.csv")
    assert read_rows(tmp_path / "results.csv") == runs


@pytest.mark.parametrize(
    "damage", [("complete", "finished"), ("0.4", "zero"), ("run,", "walk,"), ("0.4,", "0.4,,"), ("0.4", "nan")]
)
def test_a_damaged_table_is_named(damage: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    write_rows(rows(), COLUMNS, path)
    path.write_text(path.read_text().replace(*damage))
    with pytest.raises(FileError, match=r"results.csv, line \d+"):
        read_rows(path)


def test_columns_of_unknown_metrics_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    check_columns(study(), path)  # there is no table yet
    write_rows(rows(), COLUMNS, path)
    check_columns(study(), path)
    write_rows(rows(), [*COLUMNS, "luck"], path)
    with pytest.raises(FileError, match=r"results.csv has the column luck.*--plugin"):
        check_columns(study(), path)


PUBLISHED = sorted(str(path.parent.relative_to(DOCS)) for path in DOCS.rglob("study.yaml"))


@pytest.mark.usefixtures("training_variants")
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tables_are_read(name: str) -> None:
    folder = StudyFolder(DOCS / name)
    plan = folder.read_study()
    ranking = plan.settings.kind.ranking
    runs = [run for run in matched(plan, read_rows(folder.results)) if run.purpose != "reference"]
    assert {run.status for run in runs} <= {"complete", "failed"}
    assert all(run.scores[ranking] is not None for run in runs if run.status == "complete")
    assert all(run.error and run.scores.get(ranking) is None for run in runs if run.status == "failed")
    check_columns(plan, folder.results)


def test_rows_are_gathered_from_disk(tmp_path: Path) -> None:
    plan, folder = tiny(seeds=[0, 1], families={"iqe-maxmean": {}, "euclidean": {}}), StudyFolder(tmp_path / "results")
    swept(tiny(), folder.path)
    folder.write_failure(plan.runs[1], "no memory\nand more lines")
    by_run = {run.run: run for run in gather(folder, plan)}
    complete = by_run["iqe-maxmean__5__seed0"]
    assert (complete.status, complete.steps, complete.purpose) == ("complete", 6, "evaluation")
    assert complete.seconds is not None
    assert complete.seconds > 0
    with (folder.run(plan.runs[0]) / "metrics.csv").open() as file:
        assert complete.loss == float(list(csv.DictReader(file))[-1]["loss"])
    failed = by_run["euclidean__5__seed0"]
    assert (failed.status, failed.error, failed.scores) == ("failed", "no memory", {})
    assert by_run["euclidean__5__seed1"].status == "missing"
    assert by_run["oracle__5__seed0"].scores["success_rate"] == 1
    assert "oracle__5__seed1" not in by_run  # its data has not been collected


def test_the_summary_counts_runs() -> None:
    text = summary(study(), rows())
    assert "collector.trajectories 10, 100" in text
    assert "seeds 0, 1, 2; tuning seeds 7" in text
    assert "16 of 16 complete  triangle=1 or triangle=3" in text
