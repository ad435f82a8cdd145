"""Dataset cards: contents, coverage and provenance of a dataset. A card states only what the data shows."""

import numpy as np
from numpy.typing import NDArray

from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.world import World


def visits(dataset: Dataset) -> NDArray[np.int64]:
    """(states, actions): how often each action was taken in each state."""
    shape = _table_shape(dataset)
    return np.bincount(_pairs(dataset), minlength=shape[0] * shape[1]).reshape(shape)


def _table_shape(dataset: Dataset) -> tuple[int, int]:
    return len(dataset.observations), dataset.header.spaces.num_actions


def _pairs(dataset: Dataset) -> NDArray[np.int64]:
    """(transitions,): the state-action pair of each, as an index into the flattened table of all."""
    return np.ravel_multi_index((dataset.states[dataset.sources], dataset.actions), _table_shape(dataset))


def card(dataset: Dataset) -> dict[str, str]:
    """The lines of the card: name and text."""
    lengths = dataset.lengths
    quartiles = ", ".join(f"{value:g}" for value in np.percentile(lengths, (0, 25, 50, 75, 100)))
    lines = {
        "episodes": f"{dataset.num_episodes:,}",
        "transitions": f"{dataset.num_transitions:,}",
        **_ends(dataset),
        "episode length": f"mean {lengths.mean():.1f}; minimum, quartiles, maximum {quartiles}",
        **_coverage(dataset),
        **({} if dataset.world is None else _in_world(dataset, dataset.world)),
        "source": dataset.header.source,
    }
    if dataset.header.collector is not None:
        lines["collector"] = ", ".join(f"{key}={value}" for key, value in dataset.header.collector.items())
    lines["versions"] = ", ".join(f"{name} {version}" for name, version in dataset.header.versions.items())
    lines["content hash"] = dataset.content_hash
    return lines


def _ends(dataset: Dataset) -> dict[str, str]:
    """How episodes end. Only a known world says when a goal counts as reached; other data has just flags."""
    with_goal = dataset.goals >= 0
    lines = {"goals": f"recorded for {with_goal.mean():.1%} of episodes" if with_goal.any() else "none recorded"}
    if dataset.known_world is not None and with_goal.any():
        at_goal = dataset.states == np.repeat(dataset.goals, dataset.lengths + 1)
        reached = np.logical_or.reduceat(at_goal, dataset.starts)
        lines["reached their goal"] = f"{reached[with_goal].mean():.1%} of episodes with a goal"
    lines["marked terminated"] = f"{dataset.terminated.mean():.1%} of episodes"
    lines["marked truncated"] = f"{dataset.truncated.mean():.1%} of episodes"
    return lines


def _coverage(dataset: Dataset) -> dict[str, str]:
    """Visited states and state-action pairs: of all, if the world tells how many there are."""
    # Not from `visits`: a file may declare far more actions than it contains.
    states, pairs = len(np.unique(dataset.states)), len(np.unique(_pairs(dataset)))
    if dataset.known_world is None:
        unknown = "number in the world unknown" if dataset.world is None else "states of the world not recognized"
        return {
            "states": f"{states:,} distinct among {len(dataset.states):,} observations; {unknown}",
            "state-action pairs": f"{pairs:,} distinct among {dataset.num_transitions:,} transitions",
            **({} if dataset.noisy else {"repeated pairs": _repeated(dataset)}),
        }
    all_states, actions = _table_shape(dataset)
    all_pairs = all_states * actions
    return {
        "states": f"{states:,} of {all_states:,} visited ({states / all_states:.1%})",
        "state-action pairs": f"{pairs:,} of {all_pairs:,} visited ({pairs / all_pairs:.1%})",
    }


def _repeated(dataset: Dataset) -> str:
    """Whether what is seen again has the same outcome, as in a deterministic world that is fully observed."""
    before, after = dataset.states[dataset.sources], dataset.states[dataset.sources + 1]
    transitions, times = np.unique([before, dataset.actions, after], axis=1, return_counts=True)
    _, inverse, outcomes = np.unique(transitions[:2], axis=1, return_inverse=True, return_counts=True)
    repeated = np.bincount(inverse.ravel(), times) > 1
    if not repeated.any():
        return "none, so that nothing shows whether the world is deterministic"
    several = (outcomes > 1).sum()
    part = f"{several:,} of them ({several / repeated.sum():.1%})"
    return f"{repeated.sum():,} occur more than once, {part} with several next states"


def _in_world(dataset: Dataset, world: World) -> dict[str, str]:
    before, after = dataset.states[dataset.sources], dataset.states[dataset.sources + 1]
    connected = "strongly connected" if ground_truth(world).strongly_connected else "with unreachable pairs of states"
    lines = {} if dataset.noisy else {"blocked moves": f"{(before == after).mean():.2%} of steps"}
    layout, stored = world.layout, dataset.header.world
    if layout is not None and not dataset.noisy:
        into_door = (layout.headings[after] >= 0) & (before != after)
        lines = {"door crossings": f"{into_door.mean():.2%} of steps enter a one-way door", **lines}
    if dataset.layout is not None and layout is not None:
        lines["layout"] = (
            f"{layout.name}: {layout.width}x{layout.height}, {len(layout.cells)} states, "
            f"{len(layout.doors)} doors, {connected}"
        )
    elif stored is not None:
        params = ", ".join(f"{key}={value!r}" for key, value in stored.params.items())
        kind = "deterministic" if world.deterministic else "stochastic"
        lines["world"] = f"{stored.name} ({params}): {world.num_states:,} states, {kind}, {connected}"
    return lines if not world.notices else {**lines, "notice": "; ".join(world.notices)}
