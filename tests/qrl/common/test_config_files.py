"""Config files by path and by name, and what they include."""

from pathlib import Path

import pytest

from qrl.common.config_files import dump_yaml, read_config
from qrl.common.errors import ConfigError
from tests.qrl.common.test_settings import write


def test_configs_by_name() -> None:
    from qrl.envs.collector import CollectorSettings

    assert CollectorSettings.load("demo") == CollectorSettings.load("data/demo") == CollectorSettings(trajectories=300)
    with pytest.raises(ConfigError, match=r"unknown config 'dmo' \(did you mean 'demo'\?\)"):
        CollectorSettings.load("dmo")
    with pytest.raises(ConfigError, match=r"config 'studies/smoke' is for sweep-agents, not for this command"):
        CollectorSettings.load("studies/smoke")
    with pytest.raises(ConfigError, match=r"config 'smoke' is for sweep-agents, not for this command"):
        CollectorSettings.load("smoke")
    with pytest.raises(ConfigError, match=r"config 'paper' is for train-agent and sweep-agents, not for this command"):
        CollectorSettings.load("paper")
    with pytest.raises(ValueError, match=r"absent.yaml cannot be read: No such file"):
        read_config("absent.yaml")


def test_a_config_can_build_on_a_built_in_one(tmp_path: Path) -> None:
    from qrl.agents.runs.settings import TrainSettings

    config = write(tmp_path, "include: paper\nlearner:\n  batch_size: 7\nseed: 3\n")
    settings = TrainSettings.load(config)
    assert settings.learner == TrainSettings.load("paper").learner.model_copy(update={"batch_size": 7})
    assert settings.seed == 3
    with pytest.raises(ConfigError, match="unknown config 'papers'"):
        TrainSettings.load(write(tmp_path, "include: papers"))
    with pytest.raises(ConfigError, match="include must be the name of another config"):
        TrainSettings.load(write(tmp_path, "include: 3"))


def test_configs_that_include_each_other(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(f"include: {second}")
    second.write_text(f"include: {first}")
    with pytest.raises(ConfigError, match="include must be the name of another config"):
        read_config(str(first))


def test_a_folder_does_not_hide_a_built_in_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_config("demo", "data") == {"trajectories": 300}


@pytest.mark.parametrize("text", ["1e-3", "off", "007", "null", "true", "a: b", "2024-01-01", "", "plain"])
def test_dumped_values_round_trip(text: str, tmp_path: Path) -> None:
    values = {"name": text, "inner": {"rate": 3e-4, "steps": None}, "flag": True, "params": {"sizes": [1, 2]}}
    assert read_config(write(tmp_path, dump_yaml(values))) == values
