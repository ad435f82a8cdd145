"""Import from and export to Minari, an optional dependency."""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from qrl.common.errors import UserError
from qrl.envs.collector import CollectorSettings
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.layout import Layout, builtin_layouts, load_layout
from qrl.envs.minari_parts import encode_parts
from qrl.envs.registration import ENV_ID


def to_minari(dataset: Dataset, dataset_id: str) -> None:
    """Save `dataset` as a local Minari dataset, with the observations and rewards of the goal environment.

    The reward is -1 per step and 0 on reaching the goal. Unless all episodes have goals, observations are plain arrays.
    """
    minari = check_export(dataset_id)
    box = spaces.Box(-np.inf, np.inf, (dataset.header.spaces.observation_dim,), np.float32)
    with_goals = bool((dataset.goals >= 0).all())
    keys = ("observation", "achieved_goal", "desired_goal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Minari warns about missing metadata
        minari.create_dataset_from_buffers(
            dataset_id,
            buffer=[_episode(minari, dataset, index, with_goals) for index in range(dataset.num_episodes)],
            env=_env_spec(dataset),
            observation_space=spaces.Dict(dict.fromkeys(keys, box)) if with_goals else box,
            action_space=spaces.Discrete(dataset.header.spaces.num_actions),
            description=f"{dataset!r}, exported by qrl",
            algorithm_name=dataset.header.source,
        )


def check_export(dataset_id: str) -> Any:
    """Check that a dataset can be exported under this id; returns the module `minari`."""
    minari = _import_minari()
    _check_id(minari, dataset_id)
    if dataset_id in minari.list_local_datasets():
        raise DatasetError(f"the Minari dataset {dataset_id} already exists; choose another id or delete it")
    return minari


def _env_spec(dataset: Dataset) -> EnvSpec | None:
    """The environment of data with a layout, with the step limit that the data was collected with."""
    if dataset.layout is None:
        return None
    recorded = (dataset.header.collector or {}).get("max_steps", CollectorSettings().max_steps)
    limit = max(int(recorded), int(dataset.lengths.max()))
    spec = copy.deepcopy(gymnasium.spec(ENV_ID))
    spec.kwargs = {"layout": dataset.layout.text, "max_steps": limit}
    spec.max_episode_steps = limit  # where other libraries look for it; d3rlpy cannot load data without it
    return spec


def _episode(minari: Any, dataset: Dataset, index: int, with_goals: bool) -> Any:
    first, end = int(dataset.offsets[index]), int(dataset.offsets[index + 1])
    states = dataset.states[first + index : end + index + 1]
    rows = dataset.observations[states]
    observations: Any = rows
    if with_goals:
        goal = np.broadcast_to(dataset.observations[dataset.goals[index]], rows.shape)
        observations = {"observation": rows, "achieved_goal": rows, "desired_goal": goal}
    last = np.arange(end - first) == end - first - 1
    at_goal = last & dataset.terminated[index] if dataset.noisy else states[1:] == dataset.goals[index]
    return minari.data_collector.EpisodeBuffer(
        id=index,
        observations=observations,
        actions=dataset.actions[first:end].astype(np.int64),
        rewards=np.where(at_goal, 0.0, -1.0),
        terminations=last & dataset.terminated[index],
        truncations=last & dataset.truncated[index],
    )


def from_minari(dataset_id: str) -> Dataset:
    """Import a local Minari dataset with Discrete actions and flat observations (or a goal environment's Dict)."""
    minari = _import_minari()
    _check_id(minari, dataset_id)
    with _damage_named(dataset_id):
        _check_local(minari, dataset_id)
        return _read(minari.load_dataset(dataset_id), dataset_id)


def _read(stored: Any, dataset_id: str) -> Dataset:
    actions, observations = stored.action_space, stored.observation_space
    in_dict = isinstance(observations, spaces.Dict)
    in_parts = in_dict and "observation" not in observations.spaces
    flat = observations.spaces.get("observation") if in_dict else observations
    if not isinstance(actions, spaces.Discrete) or actions.start != 0:
        raise DatasetError(f"{dataset_id}: the action space is {actions}; only Discrete from 0 is supported")
    if not in_parts and (not isinstance(flat, spaces.Box) or len(flat.shape) != 1):
        raise DatasetError(
            f"{dataset_id}: the observation space is {observations}; only a one-dimensional Box is supported, "
            "or a Dict, with one under 'observation' or of parts such as MiniGrid's image, direction and mission"
        )
    with_goals = in_dict and "desired_goal" in observations.spaces
    episodes = list(stored.iterate_episodes())
    if not episodes or not all(len(episode.actions) for episode in episodes):
        raise DatasetError(f"{dataset_id}: there are no episodes, or some have no actions")
    source = f"the Minari dataset {dataset_id}"
    if in_parts:
        rows, treatment = encode_parts(observations, episodes, dataset_id)
        source = f"{source}: {treatment}"
    else:
        rows = np.concatenate(
            [episode.observations["observation"] if in_dict else episode.observations for episode in episodes]
        )
    return Dataset.from_arrays(
        rows,
        np.concatenate([episode.actions for episode in episodes]),
        [len(episode.actions) for episode in episodes],
        num_actions=int(actions.n),
        terminated=np.array([bool(episode.terminations[-1]) for episode in episodes]),
        truncated=np.array([bool(episode.truncations[-1]) for episode in episodes]),
        goals=np.stack([episode.observations["desired_goal"][0] for episode in episodes]) if with_goals else None,
        layout=_layout(stored.spec.env_spec),
        source=source,
    )


@contextmanager
def _damage_named(dataset_id: str) -> Iterator[None]:
    """Minari and HDF5 raise almost anything at damaged files."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise DatasetError(
            f"the Minari dataset {dataset_id} cannot be read ({reason}); delete it, and get it again or export it again"
        ) from error


def _check_local(minari: Any, dataset_id: str) -> None:
    folder = Path(minari.storage.datasets_root_dir.get_dataset_path(dataset_id))
    special = [path for path in folder.rglob("*") if path.exists() and not path.is_file() and not path.is_dir()]
    if special:  # such as a link to a device, which could be read for ever
        raise DatasetError(f"the Minari dataset {dataset_id} cannot be read: {special[0]} is not a regular file")
    if dataset_id not in minari.list_local_datasets():
        local = ", ".join(sorted(minari.list_local_datasets())) or "none"
        raise DatasetError(
            f"no local Minari dataset {dataset_id} (local ones: {local}); get it with: minari download {dataset_id}"
        )


def _layout(spec: Any) -> Layout | None:
    """The layout of qrl/OneWayDoors-v0 data, else None. Never reads a file named by the dataset."""
    if spec is None or spec.id != ENV_ID:
        return None
    source = str(spec.kwargs.get("layout", "six-rooms"))
    if source in builtin_layouts():
        return load_layout(source)
    return Layout(source, "imported layout") if "\n" in source else None


def _check_id(minari: Any, dataset_id: str) -> None:
    try:
        minari.dataset.minari_dataset.parse_dataset_id(dataset_id)
    except (ValueError, TypeError):  # TypeError: no version
        raise DatasetError(f"{dataset_id!r} is not a Minari id such as one-way-doors/six-rooms-v0") from None


def _import_minari() -> Any:
    try:
        import minari
    except ImportError:
        raise DatasetError("Minari is not installed; in the checkout, run: pip install -e '.[minari]'") from None
    return minari
