from pathlib import Path
from typing import Any

import pytest
import torch

from qrl import QModelSpec
from qrl.agents.runs.model import build_model, resolve
from qrl.agents.runs.settings import TrainSettings
from qrl.common.errors import ConfigError, RegistryError
from tests.agents.worlds import small_settings

SPEC = QModelSpec(observation_dim=18, num_actions=4, discount=0.95)


def test_the_width_is_that_of_the_widest_layers() -> None:
    def sizes(**model: Any) -> Any:
        settings = TrainSettings.from_values({"model": model, "compile": "off"}, "test")
        return build_model(settings, SPEC)[1]["hidden_sizes"]

    assert sizes(width=8) == [8, 8, 8]
    assert sizes(width=8, name="unconstrained-disc") == [8, 8, 8, 128]
    assert sizes(width=8, params={"hidden_sizes": [4]}) == [4]


def test_initial_weights_follow_the_seed() -> None:
    first, again, other = (build_model(small_settings(seed=seed), SPEC)[0].state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)


def test_a_device_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="device: 'toaster' cannot be used here"):
        build_model(small_settings(device="toaster"), SPEC)


def test_settings_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"dataset": "data/doors.npz", "model": {"name": "mrn"}, "seed": 3}
    settings = resolve(TrainSettings.from_values(values, "test"))
    assert settings.run == "runs/doors__mrn__seed3"
    assert settings.dataset == str(tmp_path / "data" / "doors.npz")
    assert settings.compile in ("on", "off")
    assert settings.threads == torch.get_num_threads()
    assert resolve(settings) == settings
    assert resolve(TrainSettings()).run == "runs/six-rooms__mrn-fixed__seed0"


def test_compile_auto_needs_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    for has_compiler, expected in ((True, "on"), (False, "off")):
        monkeypatch.setattr("qrl.agents.runs.model.has_compiler", lambda answer=has_compiler: answer)
        assert resolve(TrainSettings()).compile == expected


def test_a_misspelled_model_is_refused() -> None:
    with pytest.raises(RegistryError, match="did you mean 'iqe-maxmean'"):
        resolve(TrainSettings.from_values({"model": {"name": "iqe-maxmeen"}}, "test"))
