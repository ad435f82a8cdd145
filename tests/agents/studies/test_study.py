"""What a study plans, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest

from qrl.agents.errors import RunError
from qrl.agents.runs.settings import GraphTrainSettings, TrainSettings
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.study import Study, StudySettings, nest
from qrl.agents.studies.sweep import check_models
from qrl.common.errors import ConfigError
from qrl.errors import RegistryError

VALUES: dict[str, Any] = {
    "config": "quick",
    "settings": {"model.width": 32, "learner": {"lr": 0.01}},
    "families": {
        "iqe-maxmean": {},
        "regularised": {
            "model": "dot-disc",
            "settings": {"learner.lr": 0.1},
            "grid": {"learner.triangle": [0.3, 3], "model.params.readout": ["disc", "dist"]},
        },
    },
    "axis": {"collector.trajectories": [10, 20]},
    "seeds": [0, 1],
    "tuning_seeds": [7],
}


def study(**changes: Any) -> Study:
    return Study("test", StudySettings.from_values(VALUES | changes, "test"))


def test_the_grid() -> None:
    runs = study().runs
    # Two sizes; one choice on two seeds, four choices on two seeds and the tuning seed.
    assert len(runs) == len({run.name for run in runs}) == 2 * (1 * 2 + 4 * 3)
    assert [run.seed for run in runs] == sorted((run.seed for run in runs), key=[7, 0, 1].index)
    assert {run.family for run in runs if run.tuning} == {"regularised"}
    assert {run.seed for run in runs if run.tuning} == {7}
    (run,) = (run for run in runs if run.name == "regularised__triangle=3,readout=dist__20__seed1")
    settings = run.settings
    assert isinstance(settings, TrainSettings)
    assert settings.model.name == "dot-disc"
    assert settings.model.params == {"readout": "dist"}
    assert settings.model.width == 32
    assert (settings.learner.triangle, settings.learner.lr) == (3, 0.1)
    assert settings.learner.min_steps == 3000  # of quick
    assert (settings.seed, settings.collector.seed, settings.collector.trajectories) == (1, 1, 20)
    plain = next(run for run in runs if run.family == "iqe-maxmean")
    assert plain.name == "iqe-maxmean__10__seed0"
    assert isinstance(plain.settings, TrainSettings)
    assert plain.settings.learner.lr == 0.01
    # Every family meets the same data.
    assert len({run.data_name for run in runs}) == 6


def test_worlds_and_graphs() -> None:
    worlds = {name: {"graph.kind": f"random-{name}"} for name in ("dense", "block")}
    made = study(
        command="train-graph",
        config="graphs/random",
        settings={},
        families={"iqe-sum": {}, "euclidean": {}},
        axis={"model.params.latent_size": [16, 32]},
        worlds=worlds,
        tuning_seeds=[],
    )
    assert len(made.runs) == 2 * 2 * 2 * 2
    run = next(run for run in made.runs if run.name == "euclidean__block__32__seed1")
    assert isinstance(run.settings, GraphTrainSettings)
    assert (run.settings.graph.kind, run.settings.graph.split_seed, run.settings.graph.seed) == ("random-block", 1, 0)
    assert run.settings.model.params == {"latent_size": 32, "batch_norm": False}
    # Data depends on the world and the seed, not on this axis.
    assert len({run.data_name for run in made.runs}) == 2 * 2


def test_dotted_and_nested_keys_are_the_same() -> None:
    assert nest({"a.b": 1, "a": {"c.d": 2}, "e": 3}) == {"a": {"b": 1, "c": {"d": 2}}, "e": 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"familes": {}}, "unknown key 'familes'"),
        ({"families": {}}, "families"),
        ({"seeds": []}, "seeds"),
        ({"axis": {"collector.trajectories": []}}, "axis"),
        ({"axis": {"learner.lr": [1], "seed": [2]}}, "axis: must be one key"),
        ({"axis": {}}, "axis"),
        ({"worlds": {"a b": {}}}, "worlds: the name 'a b'"),
        ({"worlds": {"a": {"seed": 3}}}, "worlds.a: seed is decided"),
        ({"seeds": [0, 7]}, r"both have \[7\]"),
        ({"seeds": [0, 0]}, "twice"),
        ({"tuning_seeds": []}, "several choices"),
        ({"families": {"a/b": {}}}, "'a/b'"),
        ({"families": {"oracle": {"model": "mrn"}}}, "'oracle' is the name of a reference"),
        (
            {
                "claims": [
                    {"text": "c", "more": ["regularised"], "than": ["regularised"], "at": [10], "than_at": [10, 20]}
                ]
            },
            "one by one",
        ),
        ({"families": {"dot-disc": {"grid": {"learner.lr": []}}}}, "leaves no run"),
        ({"families": {"dot-disc": {"settings": {"learner.lrr": 1}}}}, "families.dot-disc: unknown key 'learner.lrr'"),
        ({"families": {"dot-disc": {"grid": {"learner.lr": [1, -1]}}}}, "learner.lr"),
        ({"settings": {"collector": {"seed": 3}}}, "collector.seed is decided"),
        ({"settings": {"model.name": "mrn"}}, "model.name is decided"),
        ({"config": "quik"}, "did you mean 'quick'"),
        ({"axis": {"collector.trajectories": [0]}}, "collector.trajectories"),
        ({"claims": [{"text": "c", "more": ["iqe-maxmen"], "than": ["regularised"]}]}, "did you mean 'iqe-maxmean'"),
        (
            {"claims": [{"text": "c", "more": ["iqe-maxmean"], "than": ["regularised"], "at": [3]}]},
            "collector.trajectories '3'",
        ),
        (
            {"claims": [{"text": "c", "more": ["regularised"], "than": ["regularised"], "metric": "mse"}]},
            "metric 'mse'",
        ),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        assert study(**changes).runs


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({"iqe-maxmen": {}}, "families.iqe-maxmen.*did you mean 'iqe-maxmean'"),
        ({"iqe-sum": {"settings": {"model.params.latent": 3}}}, "families.iqe-sum.*unknown key 'latent'"),
    ],
)
def test_unknown_models_and_parameters(family: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, RegistryError), match=message):
        check_models(study(families=family))


def test_two_runs_of_one_name() -> None:
    families: dict[str, Any] = {"dot-disc": {"grid": {"learner.triangle": [1, 1]}}}
    assert len(study(families=families).runs) == 4  # the same choice twice is one choice
    families = {"a__b": {"model": "mrn"}, "a": {"model": "mrn"}}
    worlds: dict[str, Any] = {"b": {}, "c": {}}
    assert study(families=families, worlds=worlds, tuning_seeds=[]).runs
    with pytest.raises(ConfigError, match="2 runs would be called a__b__c__10__seed0"):
        assert study(families=families, worlds={"c": {}, "b__c": {}}, tuning_seeds=[]).runs


def test_a_study_does_not_depend_on_its_config_file(tmp_path: Path) -> None:
    config = tmp_path / "base.yaml"
    config.write_text("learner: {lr: 0.5}\n")
    made = study(config=str(config), settings={})
    folder = StudyFolder(tmp_path / "results")
    folder.open(made)
    (tmp_path / "results" / "runs").mkdir()
    config.write_text("learner: {lr: 0.25}\n")
    assert folder.read_study().runs == made.runs
    with pytest.raises(ConfigError, match=r"learner\.lr was 0\.5, now 0\.25"):
        folder.check(study(config=str(config), settings={}))
    config.unlink()
    assert folder.read_study().name == "test"


def test_a_config_may_have_what_the_grid_decides(tmp_path: Path) -> None:
    config = tmp_path / "base.yaml"
    config.write_text("{seed: 3, model: {name: mrn, width: 7}, collector: {trajectories: 5, seed: 4}}\n")
    made = study(config=str(config), settings={})
    assert made.runs[0].settings.model.width == 7
    folder = StudyFolder(tmp_path / "results")
    folder.open(made)
    assert folder.read_study().runs == made.runs


def test_a_folder_goes_on_with_its_own_study_only(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "results")
    folder.open(study(seeds=[5]))
    folder.open(study())  # nothing has been computed: a mistake may be mended
    assert folder.read_study().runs == study().runs
    (folder.path / "runs").mkdir()
    folder.open(study(seeds=[0, 1, 2], axis={"collector.trajectories": [10, 20, 30]}))  # it may grow
    with pytest.raises(ConfigError, match="__30__seed7, which this one does not plan"):
        folder.open(study())
    bigger = {"seeds": [0, 1, 2], "axis": {"collector.trajectories": [10, 20, 30]}}
    with pytest.raises(ConfigError, match=r"model.width was 32, now 64"):
        folder.open(study(**bigger, settings={"model.width": 64}))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").touch()
    with pytest.raises(RunError, match="holds no study"):
        StudyFolder(tmp_path / "other").open(study())
    with pytest.raises(RunError, match=r"no study\.yaml"):
        StudyFolder(tmp_path / "other").read_study()
    with folder.lock(), pytest.raises(RunError, match="another sweep"), folder.lock():
        pass
