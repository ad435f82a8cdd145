"""Small data and settings for tests of learning."""

from pathlib import Path
from typing import Any

from qrl.agents.runs.settings import TrainSettings
from qrl.common.settings import merge
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset

SMALL: dict[str, Any] = {"hidden_sizes": [16, 16], "latent_size": 16}


def corridor(trajectories: int = 40, layout: str = "corridor") -> Dataset:
    return collect(CollectorSettings(layout=layout, trajectories=trajectories, max_steps=30))


def short_run(run: Path | None, values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Values for a run of some steps that logs and saves often; `changes` go into groups of `values`."""
    common = {"compile": "off", "threads": 2, "log_every": 3, "evaluate_every": 10, "checkpoint_every": 5}
    return merge({**common, **values, "run": None if run is None else str(run)}, changes)


def small_settings(run: Path | None = None, **changes: Any) -> TrainSettings:
    """A run of 20 steps on the corridor."""
    values: dict[str, Any] = {
        "collector": {"layout": "corridor", "trajectories": 40, "max_steps": 30},
        "model": {"name": "iqe-maxmean"},
        "learner": {"batch_size": 32, "epochs": 0.01, "min_steps": 20},
    }
    if "params" not in changes.get("model", {}):
        values["model"]["params"] = SMALL
    return TrainSettings.from_values(short_run(run, values, changes), "test")
