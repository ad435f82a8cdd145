"""Small data and settings for tests of learning."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qrl.agents.runs.settings import GraphTrainSettings, TrainSettings
from qrl.common.config_files import merge
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout

PLAIN: dict[str, Any] = {
    "fourier": 0,
    "goals": {"balanced": 0},
    "loss": "mse",
    "bound": "none",
    "conservative": 0,
}  # of the paper
SMALL: dict[str, Any] = {"hidden_sizes": [16, 16], "latent_size": 16}


def other_notices(notices: Sequence[str]) -> list[str]:
    """Those that are not about an agent worse than chance, as agents of a few steps are."""
    return [notice for notice in notices if "fewer goals than random actions" not in notice]


def corridor(trajectories: int = 40, layout: str = "corridor") -> Dataset:
    return collect(CollectorSettings(layout=layout, trajectories=trajectories, max_steps=30))


def without_layout(dataset: Dataset) -> Dataset:
    """The same trajectories as a user's own data, of a world that nothing is known about."""
    rows = dataset.observations[dataset.states]
    num_actions = dataset.header.spaces.num_actions
    return Dataset.from_arrays(rows, dataset.actions, dataset.lengths, num_actions=num_actions)


def ring_data(states: int = 6) -> Dataset:
    """One tour of `tests.agents.goal_envs.Ring` without staying anywhere."""
    from tests.agents.goal_envs import Ring

    env = Ring(states)
    rows = np.stack([env.describe(state % states) for state in range(states + 1)])
    return Dataset.from_arrays(rows, [1] * states, [states], num_actions=3)


def short_run(run: Path | None, values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Values for a run of some steps that logs and saves often; `changes` go into groups of `values`."""
    common = {"compile": "off", "threads": 1, "log_every": 3, "evaluate_every": 10, "checkpoint_every": 5}
    return merge({**common, **values, "run": None if run is None else str(run)}, changes)


def small_settings(run: Path | None = None, **changes: Any) -> TrainSettings:
    """A run of 20 steps on the corridor."""
    values: dict[str, Any] = {
        "collector": {"layout": "corridor", "trajectories": 40, "max_steps": 30},
        "model": {"name": "iqe-maxmean"},
        "learner": {"batch_size": 32, "epochs": 0.01, "min_steps": 20, "lr": 1e-3},
    }
    if changes.get("learner", {}).get("name", "mbold") == "mbold":
        values["learner"] |= PLAIN
    if "params" not in changes.get("model", {}):
        values["model"]["params"] = SMALL
    return TrainSettings.from_values(short_run(run, values, changes), "test")


def graph_settings(run: Path | None = None, **changes: Any) -> GraphTrainSettings:
    """A run of 20 steps on a graph of 30 nodes."""
    values: dict[str, Any] = {
        "graph": {"kind": "random-block", "nodes": 30, "feature_size": 8},
        "model": changes.pop("model", {"name": "iqe-sum", "params": SMALL}),
        "learner": {"batch_size": 64, "epochs": 0.01, "min_steps": 20, "lr": 1e-2},
    }
    return GraphTrainSettings.from_values(short_run(run, values, changes), "test")


def every_transition(name: str) -> Dataset:
    """All transitions of a layout, each as an episode of its own."""
    layout = load_layout(name)
    transitions = ground_truth(layout).transitions
    states, actions = transitions.shape
    ends = np.stack([np.repeat(np.arange(states), actions), transitions.ravel()], 1)
    return Dataset.from_arrays(
        layout.observations[ends.ravel()],
        np.tile(np.arange(actions), states),
        np.ones(len(ends), int),
        num_actions=actions,
        layout=layout,
    )
