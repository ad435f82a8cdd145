"""Which families share a panel."""

from typing import Any

from qrl.agents.studies.panels import MAX_LINES, Panel, panels
from qrl.agents.studies.settings import StudySettings
from qrl.common.config_files import read_config
from tests.agents.studies.hand_made import study


def shown(settings: StudySettings) -> list[list[Panel | None]]:
    grid = panels(settings)
    assert len({len(row) for row in grid}) == 1
    for world in settings.worlds or [""]:
        members = [name for row in grid for panel in row if panel and panel.world == world for name in panel.looks]
        assert sorted(members) == sorted(settings.families)  # each in one panel
    assert all(len(set(panel.looks.values())) == len(panel.looks) for row in grid for panel in row if panel)
    return grid


def titles(grid: list[list[Panel | None]]) -> list[list[str]]:
    return [[panel.title if panel else "-" for panel in row] for row in grid]


def families(**settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): values for name, values in settings.items()}


def test_few_families_share_one_panel() -> None:
    assert titles(shown(study().settings)) == [[""]]


def test_a_panel_per_group_of_model_families() -> None:
    names = ["iqe-maxmean", "iqe-sum", "pqe-lh", "pqe-gg", "mrn", "euclidean"]
    grid = shown(study(families={name: {} for name in names}, claims=[]).settings)
    assert titles(grid) == [["IQE, PQE", "MRN, metric"]]


def test_a_large_model_family_is_split() -> None:
    members = {f"own-{number}": {"model": "iqe-maxmean"} for number in range(6)}
    grid = shown(study(families=members, claims=[]).settings)
    assert titles(grid) == [["IQE (1 of 2)", "IQE (2 of 2)"]]


def test_worlds_are_columns_that_rows_compare() -> None:
    names = ["iqe-maxmean", "iqe-sum", "pqe-lh", "pqe-gg", "mrn"]
    losses = {"mse": {"learner.lr": 1e-3}, "recipe": {"learner.lr": 1e-2}}
    grid = shown(study(families={name: {} for name in names}, worlds=losses, claims=[]).settings)
    assert titles(grid) == [["mse: IQE, PQE", "recipe: IQE, PQE"], ["mse: MRN", "recipe: MRN"]]


def test_a_panel_per_learner_where_learners_are_compared() -> None:
    mad = {"learner": {"name": "mad"}}
    members = families(
        mbold_iqe={"model": "iqe-maxmean"},
        mbold_mrn={"model": "mrn-fixed"},
        mad_iqe={"model": "iqe-maxmean", "settings": mad},
        mad_mrn={"model": "mrn-fixed", "settings": mad},
    )
    grid = shown(study(families=members, claims=[]).settings)
    assert titles(grid) == [["mbold", "mad"]]
    first, second = grid[0]
    assert first
    assert second
    assert first.looks["mbold-iqe"] == second.looks["mad-iqe"]  # a colour stands for a model


def test_rates_and_regularizers_make_no_learner() -> None:
    members = families(
        dot={"settings": {"learner.lr": 1e-3}}, dot_triangle={"model": "dot", "settings": {"learner.triangle": 1}}
    )
    assert titles(shown(study(families=members, claims=[]).settings)) == [[""]]


def test_the_largest_study() -> None:
    settings = StudySettings.from_values(read_config("paper", "studies"), "paper")
    assert all(len(panel.looks) <= MAX_LINES for row in shown(settings) for panel in row if panel)
