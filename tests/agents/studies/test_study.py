"""What a study plans, and what it refuses."""

import subprocess
import sys
from typing import Any

import pytest

from qrl.agents.learners.settings import MboldSettings
from qrl.agents.runs.settings import GraphTrainSettings, TrainSettings
from qrl.agents.studies.settings import StudySettings
from qrl.agents.studies.study import Study
from qrl.common.errors import ConfigError, UserError

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
    # Two sizes; one configuration on two seeds, four on two seeds and the tuning seed.
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
    assert isinstance(settings.learner, MboldSettings)
    assert (settings.learner.triangle, settings.learner.lr) == (3, 0.1)
    assert settings.learner.min_steps == 1500  # of quick
    assert (settings.seed, settings.collector.seed, settings.collector.trajectories) == (1, 1, 20)
    plain = next(run for run in runs if run.family == "iqe-maxmean")
    assert plain.name == "iqe-maxmean__10__seed0"
    assert isinstance(plain.settings, TrainSettings)
    assert plain.settings.learner.lr == 0.01
    # All families share their data.
    assert len({run.data_name for run in runs}) == 6


def test_worlds_and_graphs() -> None:
    worlds = {name: {"graph.kind": f"random-{name}"} for name in ("dense", "block")}
    graphs = study(
        command="train-graph",
        config="graphs/random",
        settings={},
        families={"iqe-sum": {}, "euclidean": {}},
        axis={"model.params.latent_size": [16, 32]},
        worlds=worlds,
        tuning_seeds=[],
    )
    assert len(graphs.runs) == 2 * 2 * 2 * 2
    run = next(run for run in graphs.runs if run.name == "euclidean__block__32__seed1")
    assert isinstance(run.settings, GraphTrainSettings)
    assert (run.settings.graph.kind, run.settings.graph.split_seed, run.settings.graph.seed) == ("random-block", 1, 0)
    assert run.settings.model.params == {"latent_size": 32, "batch_norm": False}
    # Data depends on the world and the seed, not on this axis.
    assert len({run.data_name for run in graphs.runs}) == 2 * 2


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
        ({"worlds": {"a": {"seed": 3}}}, "worlds.a: seed is set by the grid"),
        ({"seeds": [0, 7]}, r"both have \[7\]"),
        ({"seeds": [0, 0]}, "twice"),
        ({"tuning_seeds": []}, "several hyperparameter configurations"),
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
        (
            {
                "worlds": {"near": {}, "far": {}},
                "families": {"dot": {"worlds": ["near"]}, "mrn": {}},
                "claims": [{"text": "c", "more": ["mrn"], "than": ["dot"]}],
            },
            "the family dot does not run in the world far",
        ),
        ({"worlds": {"near": {}}, "families": {"dot": {"worlds": ["nera"]}}}, "families.dot.worlds: .*'near'"),
        ({"families": {"dot-disc": {"grid": {"learner.lr": []}}}}, "leaves no run"),
        ({"families": {"dot-disc": {"settings": {"learner.lrr": 1}}}}, "families.dot-disc: unknown key 'learner.lrr'"),
        ({"families": {"dot-disc": {"grid": {"learner.lr": [1, -1]}}}}, "learner.lr"),
        ({"settings": {"collector": {"seed": 3}}}, "collector.seed is set by the grid"),
        ({"settings": {"model.name": "mrn"}}, "model.name is set by the grid"),
        ({"config": "quik"}, "did you mean 'quick'"),
        (
            {"families": {"dot": {"settings": {"learner.name": "gbcb"}}}},
            "study test, families.dot: unknown learner 'gbcb'",
        ),
        (
            {"families": {"dot": {"settings": {"learner.epsilon": 1}}}},
            "study test, families.dot: learner.epsilon belongs to qrl; mbold has",
        ),
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
    with pytest.raises(UserError, match=message):
        assert study(**changes).runs


CLONING = {"iqe-maxmean": {}, "cloned": {"model": "dot", "settings": {"learner.name": "gcbc"}}}


@pytest.mark.parametrize("metric", ["absolute_error", "spearman", "triangle_violations"])
@pytest.mark.parametrize(("more", "than"), [("iqe-maxmean", "cloned"), ("cloned", "iqe-maxmean")])
def test_claims_about_the_distances_of_a_learner_that_learns_none(metric: str, more: str, than: str) -> None:
    claims = [{"text": "far", "more": [more], "than": [than], "metric": metric}]
    message = (
        f"^study test, claim 'far': the family cloned has no {metric}, because its learner gcbc learns scores of "
        "actions, not distances; choose another metric or family$"
    )
    with pytest.raises(ConfigError, match=message):
        assert study(families=CLONING, claims=claims).runs


def test_other_claims_about_such_a_learner() -> None:
    names = ["iqe-maxmean", "cloned"]
    claims: list[dict[str, Any]] = [
        {"text": "by default", "more": names[:1], "than": names[1:]},
        {"text": "success", "more": names[:1], "than": names[1:], "metric": "ranking_accuracy"},
        {"text": "distances of another family", "more": names[:1], "than": names[:1], "metric": "absolute_error"},
    ]
    assert study(families=CLONING, claims=claims).runs


def test_a_grid_of_learners() -> None:
    families = {"iqe-maxmean": {"grid": {"learner.name": ["mbold", "gcbc"]}}}
    assert {run.settings.learner.name for run in study(families=families).runs} == {"mbold", "gcbc"}
    claims = [{"text": "far", "more": ["iqe-maxmean"], "than": ["iqe-maxmean"], "metric": "signed_error"}]
    with pytest.raises(ConfigError, match="the family iqe-maxmean has no signed_error, because its learner gcbc"):
        assert study(families=families, claims=claims).runs


def test_planning_needs_no_torch() -> None:
    program = (
        "import sys; from qrl.agents.studies.study import Study\n"
        "from qrl.agents.studies.settings import StudySettings\n"
        f"assert Study('test', StudySettings.from_values({VALUES | {'families': CLONING}!r}, 'test')).runs\n"
        "assert 'torch' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_runs_are_counted_before_they_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(range(10))
    families = {"dot-disc": {"grid": {f"learner.k{key}": values for key in range(12)}}}
    message = (
        "^test: more than 100,000 runs would be planned: 1,000,000,000,000 configurations of all families x 1 worlds x "
        "2 values of collector.trajectories x 3 seeds; use fewer of them$"
    )
    with pytest.raises(ConfigError, match=message):
        study(families=families)
    monkeypatch.setattr("qrl.agents.studies.settings.MAX_RUNS", 5 * 2 * 3)
    assert study().runs
    monkeypatch.setattr("qrl.agents.studies.settings.MAX_RUNS", 5 * 2 * 3 - 1)
    with pytest.raises(ConfigError, match="more than 29 runs would be planned"):
        study()


def test_names_too_long_for_a_folder() -> None:
    families = {"a" * 100: {"model": "mrn", "grid": {"device": ["cpu", "c" * 100]}}}
    with pytest.raises(ConfigError, match=r"the name of the run a+.* has more than 230 bytes"):
        assert study(families=families, worlds={"w" * 100: {}}).runs
    with pytest.raises(ConfigError, match=r"families: the name .* must consist of at most 100 letters"):
        study(families={"a" * 101: {"model": "mrn"}})


def test_two_runs_of_one_name() -> None:
    families: dict[str, Any] = {"dot-disc": {"grid": {"learner.triangle": [1, 1]}}}
    assert len(study(families=families).runs) == 4  # the same configuration twice is one
    families = {"a__b": {"model": "mrn"}, "a": {"model": "mrn"}}
    worlds: dict[str, Any] = {"b": {}, "c": {}}
    assert study(families=families, worlds=worlds, tuning_seeds=[]).runs
    with pytest.raises(ConfigError, match="2 runs would be called a__b__c__10__seed0"):
        assert study(families=families, worlds={"c": {}, "b__c": {}}, tuning_seeds=[]).runs
