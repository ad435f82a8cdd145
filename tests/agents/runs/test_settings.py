import pytest

from qrl.agents.runs.settings import GraphTrainSettings, TrainSettings, differences
from qrl.common.errors import ConfigError
from qrl.envs.collector import CollectorSettings


def test_differences() -> None:
    saved = {"seed": 0, "learner": {"lr": 0.1, "goals": {"future": 0.5}}, "model": {"params": {}}}
    values = {"seed": 0, "learner": {"lr": 0.2, "goals": {"future": 0.4}}, "model": {"params": {"x": 1}}}
    assert differences(saved, values) == [
        "learner.lr was 0.1, now 0.2",
        "learner.goals.future was 0.5, now 0.4",
        "model.params.x was None, now 1",
    ]
    assert differences(values, saved)[-1] == "model.params.x was 1, now None"
    assert differences(saved, {**saved, "dataset": None}) == []


def test_what_may_change_between_a_run_and_its_checkpoints() -> None:
    first = TrainSettings.from_values({"run": "a", "learner": {"min_steps": 1}}, "test")
    values = {"run": "b", "dataset": "d.npz", "checkpoint_keep": 3, "learner": {"min_steps": 9, "epochs": 3}}
    second = TrainSettings.from_values({**values, "collector": {"trajectories": 7}}, "test")
    assert first.fixed == second.fixed
    assert TrainSettings(seed=1).fixed != first.fixed
    assert {"learner", "model", "seed", "device", "threads", "compile"} < first.fixed.keys()


def test_the_name_of_the_data() -> None:
    assert TrainSettings.from_values({"collector": {"layout": "my/world.txt"}}, "test").data_name == "world"
    assert GraphTrainSettings().data_name == "random-dense"
    graph = {"kind": "edge-list", "file": "web/berkstan.txt.gz"}
    assert GraphTrainSettings.from_values({"graph": graph}, "test").data_name == "berkstan"


def test_data_settings_can_be_replaced() -> None:
    collector = CollectorSettings(trajectories=3)
    assert TrainSettings().with_data(collector).data is collector


def test_the_learner_of_each_command_has_its_own_defaults() -> None:
    assert (TrainSettings().learner.discount, GraphTrainSettings().learner.discount) == (0.95, 0.9)
    with pytest.raises(ConfigError, match=r"unknown key 'learner\.polyak'"):
        GraphTrainSettings.from_values({"learner": {"polyak": 0.5}}, "test")
