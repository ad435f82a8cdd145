"""Held-out trajectories: whole episodes of a dataset that validate a model instead of training it."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qrl.common.seeds import derived_seed
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError

Ids = NDArray[np.int64]


def split(dataset: Dataset, fraction: float) -> tuple[Dataset, Dataset]:
    """The episodes to train on, and those to validate on; both parts have at least one."""
    held_out = held_out_episodes(dataset.num_episodes, fraction)
    others = np.setdiff1d(np.arange(dataset.num_episodes), held_out)
    return select(dataset, others), select(dataset, held_out)


def held_out_episodes(episodes: int, fraction: float) -> Ids:
    """Which of so many episodes are held out, in order: drawn at random, but always the same ones.

    They do not depend on the seed of a run, so that runs on the same data compare; a larger fraction contains those of
    a smaller one.
    """
    if episodes < 2:
        raise DatasetError(f"validation: {episodes} trajectory cannot be split; set validation=0 to hold out none")
    count = min(max(round(fraction * episodes), 1), episodes - 1)
    order = np.random.default_rng(derived_seed(0, "validation")).permutation(episodes)
    return np.sort(order[:count])


def select(dataset: Dataset, episodes: Ids) -> Dataset:
    """Some of the episodes, in this order, as a dataset of their own.

    Its table has only states of these episodes, unless the table is that of a known world.
    """
    lengths = dataset.lengths[episodes]
    states = dataset.states[_ranges(dataset.starts[episodes], lengths + 1)]
    goals, observations = dataset.goals[episodes], dataset.observations
    if dataset.known_world is None:
        rows = np.unique(np.concatenate([states, goals[goals >= 0]]))
        states = np.searchsorted(rows, states).astype(np.int32)
        goals = np.where(goals >= 0, np.searchsorted(rows, goals), -1).astype(np.int32)
        observations = observations[rows]
    return replace(
        dataset,
        observations=observations,
        states=states,
        actions=dataset.actions[_ranges(dataset.offsets[episodes], lengths)],
        offsets=np.concatenate([[0], lengths.cumsum()]),
        terminated=dataset.terminated[episodes],
        truncated=dataset.truncated[episodes],
        goals=goals,
    )


def _ranges(starts: Ids, lengths: Ids) -> Ids:
    """Concatenated: start, start + 1, ... for each start, of the given lengths."""
    before = lengths.cumsum() - lengths  # lengths of the earlier ranges
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
