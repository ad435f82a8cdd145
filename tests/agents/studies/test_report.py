"""The report of a study, from rows made by hand."""

import csv
from pathlib import Path
from typing import Any

import pytest

from qrl.agents.evaluation.metrics import register_metric
from qrl.agents.studies.findings import Findings
from qrl.agents.studies.report import (
    claims_table,
    condition_table,
    markdown,
    overview_table,
    overview_tables,
    table,
    tuning_table,
    write_report,
)
from qrl.agents.studies.settings import Condition
from tests.agents.studies.hand_made import BETTER, row, rows, study


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_the_overview_ranks_families_over_all_conditions() -> None:
    findings = Findings(study(), [run for run in rows() if (run.family, run.value) != ("iqe-maxmean", 100)])
    *_, first, second = overview_table(findings, findings.summaries()).splitlines()
    assert first == "| iqe-maxmean | 1.0 | **0.500** | - |"
    assert second == "| dot | 1.5 | 0.400 | **0.650** |"


def test_worlds_with_different_families_have_an_overview_each() -> None:
    families = {"iqe-maxmean": {}, "dot": {"model": "dot-disc", "worlds": ["b"]}}
    plan = study(families=families, worlds={"a": {}, "b": {}}, claims=[])
    scores = {("iqe-maxmean", "a"): 0.5, ("iqe-maxmean", "b"): 0.5, ("dot", "b"): 0.6}
    findings = Findings(plan, [row(name, 10, 0, score, world=world) for (name, world), score in scores.items()])
    first, second = overview_tables(findings, findings.summaries())
    assert first.splitlines()[2:] == ["| iqe-maxmean | 1.0 | **0.500** | - |"]
    assert second.splitlines()[2:] == ["| dot | 1.0 | **0.600** | - |", "| iqe-maxmean | 2.0 | 0.500 | - |"]
    assert second in markdown(findings, findings.summaries())


def test_the_table_of_a_condition() -> None:
    findings = Findings(study(), rows())
    titles, _, *lines = condition_table(findings, Condition("", 10), findings.summaries()).splitlines()
    assert cells(titles)[:5] == ["family", "configuration", "runs", "success rate", "IQM"]
    assert [cells(line)[0] for line in lines] == ["iqe-maxmean", "dot", "oracle"]
    assert cells(lines[1])[1:3] == ["triangle=1", "3"]
    assert cells(lines[1])[3].startswith("0.400 [")


def test_tables_where_lower_is_better() -> None:
    errors = {"a": {"iqe-maxmean": 0.3, "dot": 0.5}, "b": {"iqe-maxmean": 0.7, "dot": 0.5}}
    runs = [
        row(family, 10, seed, None, world=world, run=f"{family}-{world}-{seed}", scores={"mse": mse + seed / 100})
        for world, families in errors.items()
        for family, mse in families.items()
        for seed in range(3)
    ]
    graphs = study(
        command="train-graph",
        axis={"graph.fraction": [10]},
        worlds={"a": {}, "b": {}},
        families={"iqe-maxmean": {}, "dot": {"model": "dot-disc"}},
    )
    findings = Findings(graphs, runs)
    for world, best in (("a", "iqe-maxmean"), ("b", "dot")):
        lines = condition_table(findings, Condition(world, 10), findings.summaries()).splitlines()
        assert lines[2].startswith(f"| {best} |")
    overview = overview_table(findings, findings.summaries()).splitlines()
    assert "| iqe-maxmean | 1.5 | **0.31000** | 0.71000 |" in overview


def test_what_is_missing_is_said() -> None:
    runs = [run for run in rows() if not (run.family == "dot" and run.choice == "triangle=1" and run.seed == 1)]
    runs += [row("dot", size, 1, None, "triangle=1", status="failed", error="no memory") for size in (10, 100)]
    findings = Findings(study(), runs)
    text = markdown(findings, findings.summaries())
    assert "**2 runs failed**, so that some means are over fewer seeds: dot" in text
    assert "Means are over up to 3 seeds" in text
    tuning = row("dot", 10, 7, None, "triangle=3", status="failed", error="no memory")
    failed_tuning = markdown(Findings(study(), [*rows(), tuning]), [])
    assert "**1 run failed** (in tuning): dot" in failed_tuning
    assert "Means are over 3 seeds" in failed_tuning
    assert "dot-triangle=1-10-1 (no memory)" in text
    assert "| dot | triangle=1 | 2 of 3 |" in text
    assert "selected on separate seeds (7)" in text
    assert "Not tuned yet" not in text
    untuned = Findings(study(), [run for run in runs if run.seed != 7])
    expected = "**Not tuned yet**, so that claims have no data and the first configuration is shown: dot."
    assert expected in markdown(untuned, [])
    assert "Tuning is not complete" not in text
    awaited = row("dot", 100, 7, None, "triangle=3", status="missing")
    partly = [run for run in rows() if (run.seed, run.value, run.choice) != (7, 100, "triangle=3")]
    provisional = markdown(Findings(study(), [*partly, awaited]), [])
    assert "**Tuning is not complete**, so that the best configuration so far is shown: dot." in provisional


def test_equal_families_share_their_rank() -> None:
    families: dict[str, Any] = {"iqe-maxmean": {}, "euclidean": {}, "dot": {"model": "dot-disc"}}
    success = {"iqe-maxmean": 1.0, "euclidean": 1.0, "dot": 0.5}
    runs = [row(family, size, 0, success[family]) for family in families for size in (10, 100)]
    findings = Findings(study(families=families, seeds=[0], tuning_seeds=[], claims=[]), runs)
    lines = overview_table(findings, findings.summaries()).splitlines()
    assert "| iqe-maxmean | 1.5 | **1.000** | **1.000** |" in lines
    assert "| euclidean | 1.5 | **1.000** | **1.000** |" in lines
    assert "| dot | 3.0 | 0.500 | 0.500 |" in lines


def test_a_model_that_does_not_fit_is_told_from_one_that_does_not_generalize() -> None:
    runs = [run.model_copy(update={"loss": 0.00125}) if run.family == "dot" else run for run in rows()]
    findings = Findings(study(), runs)
    titles, _, *lines = condition_table(findings, Condition("", 10), findings.summaries()).splitlines()
    assert cells(titles)[-1].startswith("training loss")
    assert [line.split("|")[-2].strip() for line in lines] == ["-", "0.0013", "-"]
    unknown = Findings(study(), rows())
    assert "training loss" not in condition_table(unknown, Condition("", 10), unknown.summaries())


def test_everything_tried_in_tuning_is_shown() -> None:
    # Failed runs are shown without a score; a family with one configuration is not tuned.
    runs = [*rows(), row("dot", 10, 7, None, "triangle=1", status="failed")]
    *_, line = tuning_table(Findings(study(), runs)).splitlines()
    assert line == "| dot | triangle=3 | 0.200 | triangle=1: - |"
    assert tuning_table(Findings(study(), [run for run in rows() if run.seed != 7])) == ""


def test_claims_may_be_about_any_metric_of_the_table() -> None:
    runs = [run.model_copy(update={"scores": {**run.scores, "spearman": run.scores["success_rate"]}}) for run in rows()]
    findings = Findings(study(claims=[BETTER | {"metric": "spearman"}]), runs)
    line = claims_table(findings).splitlines()[2]
    assert line.startswith("| better (rank correlation (Spearman)) |")
    assert line.endswith("**holds** |")


def test_the_files_of_a_report(tmp_path: Path) -> None:
    findings = Findings(study(), rows())
    text, summary, picture, *others = write_report(findings, tmp_path)
    assert text.read_text() == markdown(findings, findings.summaries(), ["figure.png"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in others] == ["figure.pdf", "figure.svg"]
    with summary.open() as file:
        first = next(csv.DictReader(file))
    # The names of the columns are a file format.
    assert list(first) == [
        *("family", "choice", "chosen", "world", "value", "planned", "complete", "failed", "low", "high", "iqm"),
        *("success_rate", "signed_error"),
    ]
    expected = {"family": "iqe-maxmean", "chosen": "True", "value": "10", "planned": "3"}
    assert {key: first[key] for key in expected} == expected
    assert float(first["success_rate"]) == pytest.approx(0.5)
    names = ("family", "choice", "world", "value", "seed", "step", "success_rate")
    curves = [dict(zip(names, ("iqe-maxmean", "", "", "100", "0", step, "0.5"), strict=True)) for step in "12"]
    files = [path.name for path in write_report(findings, tmp_path, curves)]
    assert files[-3:] == ["learning-curves.png", "learning-curves.pdf", "learning-curves.svg"]
    assert "](figure.png)" in text.read_text()
    assert "](learning-curves.png)" in text.read_text()


def test_cells_of_tables_are_escaped() -> None:
    assert table(["a|b"], [["|x|"]]) == "| a\\|b |\n| --- |\n| \\|x\\| |"


@pytest.mark.usefixtures("plugin_metrics")
def test_a_plugins_metric_is_a_column() -> None:
    register_metric("luck.mean", title="luck", help="how lucky it was", digits=1)(lambda measurements: 0.5)
    runs = [run.model_copy(update={"scores": run.scores | {"luck_mean": 0.25 + run.value}}) for run in rows()]
    findings = Findings(study(), runs)
    titles, _, first, *_ = condition_table(findings, Condition("", 10), findings.summaries()).splitlines()
    assert (cells(titles)[-1], cells(first)[-1]) == ("luck", "10.2")
