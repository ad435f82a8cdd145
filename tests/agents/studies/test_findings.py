"""Findings, from rows made by hand."""

from typing import Any

import pytest

from qrl.agents.studies.findings import Findings
from qrl.agents.studies.selection import Place
from tests.agents.studies.hand_made import BETTER, row, rows, study

DOT = Place("dot", "")


def test_configurations_are_selected_on_tuning_seeds_alone() -> None:
    assert Findings(study(), rows()).selected == {Place("iqe-maxmean", ""): "", DOT: "triangle=1"}


def test_a_configuration_with_a_failed_tuning_run_is_not_selected() -> None:
    runs = [run for run in rows() if not (run.seed == 7 and run.choice == "triangle=1" and run.value == 10)]
    runs.append(row("dot", 10, 7, None, "triangle=1", status="failed", error="no memory"))
    findings = Findings(study(), runs)
    assert (findings.selected[DOT], findings.untuned) == ("triangle=3", [])
    findings = Findings(study(), [run for run in runs if run.seed != 7])
    assert (findings.selected[DOT], findings.untuned) == ("triangle=1", [DOT])
    assert [decision.verdict for decision in findings.decisions()] == ["no data"]  # none rests on an arbitrary choice
    assert [comparison.probability for comparison in findings.comparisons()] == [None]


def test_summaries_by_hand() -> None:
    groups = {
        (group.family, group.configuration, group.condition.value): group
        for group in Findings(study(), rows()).summaries()
    }
    assert len(groups) == 2 * 4
    group = groups["iqe-maxmean", "", 100]
    assert group.selected
    assert group.means == {"success_rate": pytest.approx(0.75), "signed_error": pytest.approx(-7.5)}
    assert group.iqm == pytest.approx(0.75)
    assert group.interval is not None
    assert 0.6 <= group.interval[0] < 0.75 < group.interval[1] <= 0.9
    assert not groups["dot", "triangle=3", 10].selected
    assert groups["oracle", "", 10].means["success_rate"] == 1


def test_iqm_of_summaries() -> None:
    runs = [row("iqe-maxmean", 10, seed, success) for seed, success in enumerate((0, 0.5, 0.7, 1))]
    settings = {"families": {"iqe-maxmean": {}}, "axis": {"collector.trajectories": [10]}, "claims": []}
    (group,) = Findings(study(**settings, seeds=[0, 1, 2, 3], tuning_seeds=[]), runs).summaries()
    assert group.iqm == pytest.approx(0.6)
    assert group.means["success_rate"] == pytest.approx(0.55)


def test_failed_runs_are_counted_and_left_out_of_means() -> None:
    runs = [run for run in rows() if not (run.family == "dot" and run.choice == "triangle=1" and run.seed == 1)]
    runs += [row("dot", size, 1, None, "triangle=1", status="failed", error="no memory") for size in (10, 100)]
    groups = Findings(study(), runs).summaries()
    group = next(group for group in groups if (group.family, group.configuration) == ("dot", "triangle=1"))
    assert (group.planned, group.complete, group.failed) == (3, 2, 1)
    assert group.means["success_rate"] == pytest.approx(0.4)


def test_improvement_by_hand() -> None:
    (comparison,) = Findings(study(), rows()).comparisons()
    # 10 trajectories: 0.4, 0.5, 0.6 against 0.3, 0.4, 0.5, that is 6 wins, 2 ties and a loss.
    # 100 trajectories: 0.6, 0.75, 0.9 against 0.5, 0.65, 0.8, that is 6 wins and 3 losses.
    wins = (7 / 9 + 6 / 9) / 2
    assert comparison.family == "dot"
    assert comparison.probability == pytest.approx(wins)
    assert comparison.interval is not None
    assert comparison.interval[0] < wins < comparison.interval[1]


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
    runs = [run for run in rows() if not (run.family == "dot" and run.seed == 2)]
    runs.append(row("dot", 10, 2, None, "triangle=1", status="failed", error="no memory"))
    (decision,) = Findings(study(), runs).decisions()
    assert decision.difference == pytest.approx(0.1)
    assert decision.more == pytest.approx((0.45 + 1.5 * 0.45) / 2)  # seeds 0 and 1 alone
    runs = [run for run in runs if not (run.family == "dot" and run.value == 100 and run.seed < 3)]
    (decision,) = Findings(study(), runs).decisions()
    assert decision.verdict == "no data"
    assert [comparison.probability for comparison in Findings(study(), runs).comparisons()] == [None]


def test_each_family_must_keep_the_claim() -> None:
    families = {name: {"model": "mrn"} for name in ("iqe-maxmean", "worse", "better", "equal")}
    runs = []
    for seed, success in enumerate((0.4, 0.5, 0.6)):
        for name, change in (("iqe-maxmean", 0), ("worse", -0.3), ("better", 0.1), ("equal", (0.01, 0, -0.01)[seed])):
            runs.append(row(name, 10, seed, success + change))

    def decide(than: list[str], each: bool) -> tuple[str, list[str]]:
        claim = BETTER | {"than": than, "each": each}
        settings = {"families": families, "axis": {"collector.trajectories": [10]}, "claims": [claim]}
        (decision,) = Findings(study(**settings, tuning_seeds=[]), runs).decisions()
        return decision.verdict, decision.than_families

    assert decide(["worse", "better"], each=False) == ("holds", ["worse", "better"])  # the mean is below
    assert decide(["worse", "better"], each=True) == ("does not hold", ["better"])
    assert decide(["worse", "equal"], each=True) == ("undecided", ["equal"])
    assert decide(["worse"], each=True) == ("holds", ["worse"])


def test_worlds_of_claims_where_lower_is_better() -> None:
    runs, tuning = [], []
    for world, scale in (("a", 1.0), ("b", -1.0)):
        for seed, noise in enumerate((0, 0.01, 0.02)):
            errors = {"iqe-maxmean": 0.5 - 0.2 * scale + noise, "dot": 0.5 + noise}
            runs += [row(name, 10, seed, 1.0, world=world, scores={"mse": mse}) for name, mse in errors.items()]
        for configuration, mse in (("lr=1", 0.3), ("lr=2", 0.2)):
            tuning.append(row("iqe-maxmean", 10, 7, 1.0, configuration, world=world, scores={"mse": mse}))
    settings = {
        "command": "train-graph",
        "axis": {"graph.fraction": [10]},
        "worlds": {"a": {}, "b": {}},
        "families": {"iqe-maxmean": {}, "dot": {"model": "dot-disc"}},
        "claims": [
            {"text": world, "more": ["dot"], "than": ["iqe-maxmean"], "worlds": [world]} for world in ("a", "b")
        ],
    }
    findings = Findings(study(**settings), runs)
    assert [decision.verdict for decision in findings.decisions()] == ["holds", "does not hold"]
    assert [comparison.probability for comparison in findings.comparisons()] == [0.5]
    configurations = {"iqe-maxmean": {"grid": {"learner.lr": [1, 2]}}, "dot": {"model": "dot-disc"}}
    assert Findings(study(**settings | {"families": configurations}), tuning).selected == {
        Place("iqe-maxmean", "a"): "lr=2",
        Place("iqe-maxmean", "b"): "lr=2",
        Place("dot", "a"): "",
        Place("dot", "b"): "",
    }


def test_claims_between_worlds_and_families_of_some_worlds() -> None:
    runs = []
    for seed, noise in enumerate((0, 0.01, 0.02)):
        for world, success in (("a", 0.2), ("b", 0.6)):
            runs.append(row("iqe-maxmean", 10, seed, success + noise, world=world))
        runs.append(row("dot", 10, seed, 0.1 + noise, world="b"))
    gain = {"text": "b helps", "more": ["iqe-maxmean"], "than": ["iqe-maxmean"], "worlds": ["b"], "than_worlds": ["a"]}
    settings: dict[str, Any] = {
        "axis": {"collector.trajectories": [10]},
        "worlds": {"a": {}, "b": {}},
        "families": {"iqe-maxmean": {}, "dot": {"model": "dot-disc", "worlds": ["b"]}},
        "claims": [gain, BETTER | {"worlds": ["b"]}],
    }
    findings = Findings(study(**settings), runs)
    assert [decision.verdict for decision in findings.decisions()] == ["holds", "holds"]
    assert [decision.difference for decision in findings.decisions()] == pytest.approx([0.4, 0.5])
    assert [group.condition.world for group in findings.summaries() if group.family == "dot"] == ["b"]
    assert [comparison.probability for comparison in findings.comparisons()] == [1.0]  # where both run


def test_one_seed_decides_nothing() -> None:
    runs = [run for run in rows() if run.seed in (0, 7)]
    (decision,) = Findings(study(seeds=[0]), runs).decisions()
    assert (decision.interval, decision.verdict) == (None, "undecided")


def test_the_training_loss_is_averaged_over_the_runs_that_have_one() -> None:
    runs = [run.model_copy(update={"loss": 0.1 * run.seed if run.seed else None}) for run in rows()]
    means = {group.family: group.means for group in Findings(study(), runs).summaries() if group.selected}
    assert means["iqe-maxmean"]["loss"] == pytest.approx(0.15)
    assert "loss" not in next(group.means for group in Findings(study(), rows()).summaries())
