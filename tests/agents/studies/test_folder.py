"""The folder of a study."""

from pathlib import Path

import pytest

from qrl.agents.errors import RunError
from qrl.agents.studies.folder import StudyFolder
from qrl.common.errors import ConfigError, FileError
from tests.agents.studies.test_study import study


def test_a_folder_does_not_depend_on_the_config_of_its_study(tmp_path: Path) -> None:
    config = tmp_path / "base.yaml"
    config.write_text("learner: {lr: 0.5}\n")
    plan = study(config=str(config), settings={})
    folder = StudyFolder(tmp_path / "results")
    folder.open(plan)
    folder.run(plan.runs[0]).mkdir(parents=True)
    config.write_text("learner: {lr: 0.25}\n")
    assert folder.read_study().runs == plan.runs
    with pytest.raises(ConfigError, match=r"learner\.lr was 0\.5, now 0\.25"):
        folder.check(study(config=str(config), settings={}))
    config.unlink()
    assert folder.read_study().name == "test"


def test_a_config_may_set_what_the_grid_overrides(tmp_path: Path) -> None:
    config = tmp_path / "base.yaml"
    config.write_text("{seed: 3, model: {name: mrn, width: 7}, collector: {trajectories: 5, seed: 4}}\n")
    plan = study(config=str(config), settings={})
    assert plan.runs[0].settings.model.width == 7
    folder = StudyFolder(tmp_path / "results")
    folder.open(plan)
    assert folder.read_study().runs == plan.runs


def test_a_folder_continues_only_the_same_study(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "results")
    folder.open(study(seeds=[5]))
    (folder.path / "runs").mkdir()
    folder.check(study())  # nothing has been computed: the plan may change
    folder.open(study())
    assert folder.read_study().runs == study().runs
    folder.run(study().runs[0]).mkdir()
    grown = study(seeds=[0, 1, 2], axis={"collector.trajectories": [10, 20, 30]})
    folder.check(grown)
    folder.open(grown)
    with pytest.raises(ConfigError, match="__30__seed7, which this one does not plan; name another folder with out="):
        folder.check(study())
    bigger = {"seeds": [0, 1, 2], "axis": {"collector.trajectories": [10, 20, 30]}}
    with pytest.raises(ConfigError, match=r"model.width was 32, now 64"):
        folder.check(study(**bigger, settings={"model.width": 64}))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(RunError, match="holds no study"):
        StudyFolder(tmp_path / "other").check(study())
    with pytest.raises(RunError, match=r"no study\.yaml"):
        StudyFolder(tmp_path / "other").read_study()
    with folder.lock(), pytest.raises(RunError, match="in use by another process"), folder.lock():
        pass


def test_failures_are_recorded_until_they_are_deleted(tmp_path: Path) -> None:
    folder, run = StudyFolder(tmp_path), study().runs[0]
    assert folder.failure(run) is None
    folder.write_failure(run, f"no memory for {tmp_path}/runs/x\nTraceback ...")
    assert folder.failure(run) == "no memory for runs/x\nTraceback ..."
    (damaged,) = (tmp_path / "failed").iterdir()
    damaged.write_text("[]")
    with pytest.raises(FileError, match="is damaged"):
        folder.failure(run)
    folder.write_failure(run, None)
    assert folder.failure(run) is None


def test_damaged_references_are_named(tmp_path: Path) -> None:
    folder, run = StudyFolder(tmp_path), study().runs[0]
    assert folder.read_references(run) == {}
    path = folder.references(run)
    path.parent.mkdir()
    path.write_text('{"oracle": {"success_rate": 1.0, "spl": null}}')
    assert folder.read_references(run) == {"oracle": {"success_rate": 1, "spl": None}}
    path.write_text('{"oracle": 1')
    with pytest.raises(FileError, match="is damaged; delete it"):
        folder.read_references(run)


def test_a_parameter_that_is_left_out_is_another_study(tmp_path: Path) -> None:
    small, default = study(settings={"model.params.hidden_sizes": [8]}), study()
    for saved, plan in ((small, default), (default, small)):
        with pytest.raises(ConfigError, match=r"model\.params\.hidden_sizes was"):
            plan.check_grown_from(saved, "results")
