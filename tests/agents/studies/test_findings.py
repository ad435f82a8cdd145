"""What rows say, from rows made by hand."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from qrl.agents.studies.findings import Findings
from qrl.agents.studies.pictures import _ranking, study_picture
from qrl.agents.studies.report import markdown, overview_table, place_table, write_report
from qrl.agents.studies.study import Study, StudySettings
from qrl.agents.studies.table import Row, matched, read_rows, write_rows
from qrl.common.errors import FileError

BETTER = {"text": "better", "more": ["iqe-maxmean"], "than": ["dot"]}


def study(**changes: Any) -> Study:
    values: dict[str, Any] = {
        "families": {
            "iqe-maxmean": {},
            "dot": {"model": "dot-disc", "grid": {"learner.triangle": [1, 3]}},
        },
        "axis": {"collector.trajectories": [10, 100]},
        "seeds": [0, 1, 2],
        "tuning_seeds": [7],
        "claims": [BETTER],
    }
    return Study("test", StudySettings.from_values(values | changes, "test"))


def row(family: str, size: int, seed: int, success: float | None, choice: str = "", **changes: Any) -> Row:
    values: dict[str, Any] = {
        "run": f"{family}-{choice}-{size}-{seed}",
        "family": family,
        "choice": choice,
        "value": size,
        "seed": seed,
        "purpose": "tuning" if seed == 7 else "evaluation",
        "status": "complete",
        "numbers": {} if success is None else {"success_rate": success, "signed_error": -10 * success},
    }
    return Row.model_validate(values | changes)


def rows() -> list[Row]:
    """iqe-maxmean: 0.4, 0.5, 0.6, and 1.5 times as much with more data; dot: 0.1 less, if chosen by tuning."""
    made = [row("oracle", size, seed, 1.0, purpose="reference") for size in (10, 100) for seed in range(3)]
    for scale, size in ((1, 10), (1.5, 100)):
        for seed, success in enumerate((0.4, 0.5, 0.6)):
            made.append(row("iqe-maxmean", size, seed, scale * success))
            made.append(row("dot", size, seed, scale * success - 0.1, "triangle=1"))
            made.append(row("dot", size, seed, 1.0, "triangle=3"))  # better, but not on the tuning seed
        made.append(row("dot", size, 7, 0.3, "triangle=1"))
        made.append(row("dot", size, 7, 0.2, "triangle=3"))
    return made


def test_choices_are_chosen_on_tuning_seeds_alone() -> None:
    assert Findings(study(), rows()).chosen == {"iqe-maxmean": "", "dot": "triangle=1"}


def test_cells_by_hand() -> None:
    cells = {(cell.family, cell.choice, cell.place[1]): cell for cell in Findings(study(), rows()).cells()}
    assert len(cells) == 2 * 4
    cell = cells["iqe-maxmean", "", 100]
    assert cell.chosen
    assert cell.means == {"success_rate": pytest.approx(0.75), "signed_error": pytest.approx(-7.5)}
    assert cell.iqm == pytest.approx(0.75)
    assert cell.interval is not None
    assert 0.6 <= cell.interval[0] < 0.75 < cell.interval[1] <= 0.9
    assert not cells["dot", "triangle=3", 10].chosen
    assert cells["oracle", "", 10].means["success_rate"] == 1


def test_the_overview_ranks_families_over_all_places() -> None:
    findings = Findings(study(), [each for each in rows() if (each.family, each.place[1]) != ("iqe-maxmean", 100)])
    *_, first, second = overview_table(findings, findings.cells()).splitlines()
    assert first == "| iqe-maxmean | 1.0 | **0.500** | - |"
    assert second == "| dot | 1.5 | 0.400 | **0.650** |"


def test_one_place_is_drawn_as_a_ranking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr("qrl.agents.studies.pictures.save_figure", lambda figure, path: drawn.append(figure))
    for axis in ([10, 100], [10]):
        findings = Findings(study(axis={"collector.trajectories": axis}), rows())
        study_picture(findings, findings.cells(), tmp_path / "figure.png")
    lines, ranking = (figure.axes[0] for figure in drawn)
    assert lines.get_xlabel() == "trajectories"
    assert ranking.get_xlabel() == "success"
    names = [label.get_text() for label in ranking.get_yticklabels()]
    assert names == ["dot (triangle=1)", "iqe-maxmean", "dot (triangle=3)", "oracle"]  # the best on top


def test_a_ranking_where_less_is_better() -> None:
    errors = {"iqe-maxmean": 0.1, "dot": 0.2}
    graphs = study(
        command="train-graph",
        axis={"graph.fraction": [0.5]},
        families={"iqe-maxmean": {}, "dot": {"model": "dot-disc"}},
    )
    made = [row(name, 0, 0, None, value=0.5, numbers={"mse": mse}) for name, mse in errors.items()]
    findings = Findings(graphs, made)
    (ax,) = _ranking(findings, findings.cells()).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["dot", "iqe-maxmean"]
    assert ax.get_xscale() == "log"


def test_improvement_by_hand() -> None:
    (found,) = Findings(study(), rows()).comparisons()
    # 10 trajectories: 0.4, 0.5, 0.6 against 0.3, 0.4, 0.5, that is 6 wins, 2 ties and a loss.
    # 100 trajectories: 0.6, 0.75, 0.9 against 0.5, 0.65, 0.8, that is 6 wins and 3 losses.
    wins = (7 / 9 + 6 / 9) / 2
    assert found.family == "dot"
    assert found.probability == pytest.approx(wins)
    assert found.interval is not None
    assert found.interval[0] < wins < found.interval[1]


@pytest.mark.parametrize(
    ("claim", "difference", "verdict"),
    [
        ({}, 0.1, "holds"),  # the pairs differ by exactly 0.1, however much seeds differ
        ({"more": ["dot"], "than": ["iqe-maxmean"]}, -0.1, "does not hold"),
        ({"more": ["dot"], "than": ["iqe-maxmean"], "margin": 0.2}, -0.1, "holds"),
        ({"metric": "signed_error"}, -1, "does not hold"),
        # Differences -0.1, -0.15, -0.2: Student's interval is -0.15 +- 0.124.
        ({"at": [10], "than_at": [100]}, 0.5 - 0.65, "does not hold"),
        ({"at": [10], "than_at": [100], "margin": 0.1}, 0.5 - 0.65, "undecided"),
        ({"at": [10]}, 0.1, "holds"),
        ({"more": ["dot", "iqe-maxmean"], "than": ["dot", "iqe-maxmean"]}, 0, "undecided"),
    ],
)
def test_claims_by_hand(claim: dict[str, Any], difference: float, verdict: str) -> None:
    (decision,) = Findings(study(claims=[BETTER | claim]), rows()).decisions()
    assert decision.difference == pytest.approx(difference)
    assert decision.more is not None
    assert decision.than is not None
    assert decision.more - decision.than == pytest.approx(difference)
    assert decision.verdict == verdict
    assert decision.interval is not None
    assert decision.interval[0] <= difference + 1e-9
    assert decision.interval[1] >= difference - 1e-9


def test_claims_compare_only_what_both_sides_have() -> None:
    made = [each for each in rows() if not (each.family == "dot" and each.seed == 2)]
    made.append(row("dot", 10, 2, None, "triangle=1", status="failed", error="no memory"))
    (decision,) = Findings(study(), made).decisions()
    assert decision.difference == pytest.approx(0.1)
    assert decision.more == pytest.approx((0.45 + 1.5 * 0.45) / 2)  # seeds 0 and 1 alone
    made = [each for each in made if not (each.family == "dot" and each.value == 100 and each.seed < 3)]
    (decision,) = Findings(study(), made).decisions()
    assert decision.verdict == "no data"
    assert [each.probability for each in Findings(study(), made).comparisons()] == [None]


def test_each_family_must_keep_the_claim() -> None:
    families = {name: {"model": "mrn"} for name in ("iqe-maxmean", "worse", "better", "equal")}
    made = []
    for seed, success in enumerate((0.4, 0.5, 0.6)):
        for name, change in (("iqe-maxmean", 0), ("worse", -0.3), ("better", 0.1), ("equal", (0.01, 0, -0.01)[seed])):
            made.append(row(name, 10, seed, success + change))

    def decide(than: list[str], each: bool) -> tuple[str, list[str]]:
        claim = BETTER | {"than": than, "each": each}
        settings = {"families": families, "axis": {"collector.trajectories": [10]}, "claims": [claim]}
        (decision,) = Findings(study(**settings, tuning_seeds=[]), made).decisions()
        return decision.verdict, decision.than_families

    assert decide(["worse", "better"], each=False) == ("holds", ["worse", "better"])  # the mean is below
    assert decide(["worse", "better"], each=True) == ("does not hold", ["better"])
    assert decide(["worse", "equal"], each=True) == ("undecided", ["equal"])
    assert decide(["worse"], each=True) == ("holds", ["worse"])


def test_worlds_of_claims_and_less_is_better() -> None:
    made = []
    for world, scale in (("a", 1.0), ("b", -1.0)):
        for seed, noise in enumerate((0, 0.01, 0.02)):
            errors = {"iqe-maxmean": 0.5 - 0.2 * scale + noise, "dot": 0.5 + noise}
            made += [row(name, 10, seed, 1.0, world=world, numbers={"mse": mse}) for name, mse in errors.items()]
        for choice, mse in (("lr=1", 0.3), ("lr=2", 0.2)):
            made.append(row("iqe-maxmean", 10, 7, 1.0, choice, world=world, numbers={"mse": mse}))
    settings = {
        "command": "train-graph",
        "axis": {"graph.fraction": [10]},
        "worlds": {"a": {}, "b": {}},
        "families": {"iqe-maxmean": {}, "dot": {"model": "dot-disc"}},
        "claims": [
            {"text": world, "more": ["dot"], "than": ["iqe-maxmean"], "worlds": [world]} for world in ("a", "b")
        ],
    }
    findings = Findings(study(**settings), made)
    assert [decision.verdict for decision in findings.decisions()] == ["holds", "does not hold"]
    assert [each.probability for each in findings.comparisons()] == [0.5]
    for world, best in (("a", "iqe-maxmean"), ("b", "dot")):
        table = place_table(findings, (world, 10), findings.cells())
        assert table.splitlines()[2].startswith(f"| {best} |")
    overview = overview_table(findings, findings.cells()).splitlines()
    assert "| iqe-maxmean | 1.5 | **0.31000** | 0.71000 |" in overview
    choices = {"iqe-maxmean": {"grid": {"learner.lr": [1, 2]}}, "dot": {"model": "dot-disc"}}
    assert Findings(study(**settings | {"families": choices}), made).chosen["iqe-maxmean"] == "lr=2"


def test_a_choice_with_a_failed_tuning_run_is_not_chosen() -> None:
    made = [each for each in rows() if not (each.seed == 7 and each.choice == "triangle=1" and each.value == 10)]
    made.append(row("dot", 10, 7, None, "triangle=1", status="failed", error="no memory"))
    findings = Findings(study(), made)
    assert (findings.chosen["dot"], findings.untuned) == ("triangle=3", [])
    findings = Findings(study(), [each for each in made if each.seed != 7])
    assert (findings.chosen["dot"], findings.untuned) == ("triangle=1", ["dot"])
    assert "**Not tuned yet**" in markdown(findings, findings.cells(), "")


def test_iqm_of_cells() -> None:
    made = [row("iqe-maxmean", 10, seed, success) for seed, success in enumerate((0, 0.5, 0.7, 1))]
    settings = {"families": {"iqe-maxmean": {}}, "axis": {"collector.trajectories": [10]}, "claims": []}
    (cell,) = Findings(study(**settings, seeds=[0, 1, 2, 3], tuning_seeds=[]), made).cells()
    assert cell.iqm == pytest.approx(0.6)
    assert cell.means["success_rate"] == pytest.approx(0.55)


def test_rows_are_matched_with_the_plan() -> None:
    planned = study().runs
    kept = [
        row(run.family, int(run.place[1]), run.seed, 0.5, run.choice, run=run.name) for run in planned if run.seed != 2
    ]
    made = matched(study(), kept)
    assert [each.run for each in made] == [run.name for run in planned]
    assert {each.seed for each in made if each.status == "missing"} == {2}
    text = markdown(Findings(study(), made), [], "")
    assert f"{len(kept)} of {len(planned)} runs are complete" in text
    assert "runs missing**" in text
    with pytest.raises(FileError, match="twice"):
        matched(study(), [*kept, kept[0]])
    with pytest.raises(FileError, match="foreign is no run of the study"):
        matched(study(), [*kept, row("dot", 10, 0, 0.5, run="foreign")])


def test_one_seed_decides_nothing() -> None:
    made = [each for each in rows() if each.seed in (0, 7)]
    (decision,) = Findings(study(seeds=[0]), made).decisions()
    assert (decision.interval, decision.verdict) == (None, "undecided")


def test_failures_are_named_and_counted(tmp_path: Path) -> None:
    made = [each for each in rows() if not (each.family == "dot" and each.choice == "triangle=1" and each.seed == 1)]
    made += [row("dot", size, 1, None, "triangle=1", status="failed", error="no memory") for size in (10, 100)]
    findings = Findings(study(), made)
    cell = next(cell for cell in findings.cells() if (cell.family, cell.choice) == ("dot", "triangle=1"))
    assert (cell.planned, cell.complete, cell.failed) == (3, 2, 1)
    assert cell.means["success_rate"] == pytest.approx(0.4)
    text = markdown(findings, findings.cells(), "picture.png")
    assert "**2 runs failed**" in text
    assert "dot-triangle=1-10-1 (no memory)" in text
    assert "| dot | triangle=1 | 2 of 3 |" in text
    for path in write_report(findings, tmp_path):
        assert path.stat().st_size > 0


def test_rows_survive_the_file(tmp_path: Path) -> None:
    made = [*rows(), row("dot", 10, 9, None, "a,b", status="failed", error='line "one", with a comma')]
    write_rows(made, tmp_path / "results.csv")
    assert read_rows(tmp_path / "results.csv") == made


@pytest.mark.parametrize("damage", [("complete", "finished"), ("0.4", "zero"), ("run,", "walk,")])
def test_a_damaged_table_is_named(damage: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    write_rows(rows(), path)
    path.write_text(path.read_text().replace(*damage))
    with pytest.raises(FileError, match=r"results.csv, line \d+"):
        read_rows(path)
