"""Dataset cards: contents, coverage and provenance of a dataset. A card states only what the data shows."""

import numpy as np
from numpy.typing import NDArray

from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import Layout


def visits(dataset: Dataset) -> NDArray[np.int64]:
    """(states, actions): how often each action was taken in each state."""
    shape = (len(dataset.observations), dataset.header.spaces.num_actions)
    pairs = np.ravel_multi_index((dataset.states[dataset.sources], dataset.actions), shape)
    return np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)


def card(dataset: Dataset) -> dict[str, str]:
    """The lines of the card: name and text."""
    lengths = dataset.lengths
    quartiles = ", ".join(f"{value:g}" for value in np.percentile(lengths, (0, 25, 50, 75, 100)))
    layout = dataset.layout
    lines = {
        "episodes": f"{dataset.num_episodes:,}",
        "transitions": f"{dataset.num_transitions:,}",
        **_ends(dataset),
        "episode length": f"mean {lengths.mean():.1f}; minimum, quartiles, maximum {quartiles}",
        **_coverage(dataset),
        **({} if layout is None else _in_layout(dataset, layout)),
        "source": dataset.header.source,
    }
    if dataset.header.collector is not None:
        lines["collector"] = ", ".join(f"{key}={value}" for key, value in dataset.header.collector.items())
    lines["versions"] = ", ".join(f"{name} {version}" for name, version in dataset.header.versions.items())
    lines["content hash"] = dataset.content_hash
    return lines


def _ends(dataset: Dataset) -> dict[str, str]:
    """How episodes end. Only our own environment says when a goal counts as reached; other data has just flags."""
    with_goal = dataset.goals >= 0
    lines = {"goals": f"recorded for {with_goal.mean():.1%} of episodes" if with_goal.any() else "none recorded"}
    if dataset.layout is not None and with_goal.any():
        at_goal = dataset.states == np.repeat(dataset.goals, dataset.lengths + 1)
        reached = np.logical_or.reduceat(at_goal, dataset.starts)
        lines["reached their goal"] = f"{reached[with_goal].mean():.1%} of episodes with a goal"
    lines["marked terminated"] = f"{dataset.terminated.mean():.1%} of episodes"
    lines["marked truncated"] = f"{dataset.truncated.mean():.1%} of episodes"
    return lines


def _coverage(dataset: Dataset) -> dict[str, str]:
    """Visited states and state-action pairs: of all, if the layout tells how many there are."""
    states, pairs = len(np.unique(dataset.states)), visits(dataset) > 0
    if dataset.layout is None:
        return {
            "states": f"{states:,} distinct among {len(dataset.states):,} observations; number in the world unknown",
            "state-action pairs": f"{pairs.sum():,} distinct among {dataset.num_transitions:,} transitions",
        }
    return {
        "states": f"{states:,} of {len(pairs):,} visited ({states / len(pairs):.1%})",
        "state-action pairs": f"{pairs.sum():,} of {pairs.size:,} visited ({pairs.mean():.1%})",
    }


def _in_layout(dataset: Dataset, layout: Layout) -> dict[str, str]:
    before, after = dataset.states[dataset.sources], dataset.states[dataset.sources + 1]
    into_door = (layout.headings[after] >= 0) & (before != after)
    connected = "strongly connected" if ground_truth(layout).strongly_connected else "with unreachable pairs of states"
    return {
        "door crossings": f"{into_door.mean():.2%} of steps enter a one-way door",
        "blocked moves": f"{(before == after).mean():.2%} of steps",
        "layout": f"{layout.name}: {layout.width}x{layout.height}, {len(layout.cells)} states, "
        f"{len(layout.doors)} doors, {connected}",
    }
