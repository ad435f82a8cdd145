"""A dataset's card: what is in it, how much of the world it covers and where it comes from."""

import numpy as np
from numpy.typing import NDArray

from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth


def visits(dataset: Dataset) -> NDArray[np.int64]:
    """(states, actions): how often each action was taken in each state."""
    shape = (len(dataset.observations), dataset.header.spaces.num_actions)
    pairs = np.ravel_multi_index((dataset.states[dataset.sources], dataset.actions), shape)
    return np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)


def card(dataset: Dataset) -> dict[str, str]:
    """The lines of the card, by their names."""
    lengths = dataset.lengths
    quartiles = ", ".join(f"{value:g}" for value in np.percentile(lengths, (0, 25, 50, 75, 100)))
    counts = visits(dataset)
    seen = np.zeros(len(counts), bool)
    seen[dataset.states] = True
    lines = {
        "episodes": f"{dataset.num_episodes:,}",
        "transitions": f"{dataset.num_transitions:,}",
        "reached their goal": f"{dataset.terminated.mean():.1%} of episodes",
        "cut by the step cap": f"{dataset.truncated.mean():.1%} of episodes",
        "episode length": f"mean {lengths.mean():.1f}; minimum, quartiles, maximum {quartiles}",
        "states": _share(int(seen.sum()), len(seen)),
        "state-action pairs": _share(int((counts > 0).sum()), counts.size),
    }
    layout = dataset.layout
    if layout is not None:
        before, after = dataset.states[dataset.sources], dataset.states[dataset.sources + 1]
        into_door = (layout.headings[after] >= 0) & (before != after)
        truth = ground_truth(layout)
        lines["door crossings"] = f"{into_door.mean():.2%} of steps enter a one-way door"
        lines["blocked moves"] = f"{(before == after).mean():.2%} of steps"
        lines["layout"] = (
            f"{layout.name}: {layout.width}x{layout.height}, {len(layout.cells)} states, {len(layout.doors)} doors, "
            + ("strongly connected" if truth.strongly_connected else "some states cannot reach others")
        )
    lines["source"] = dataset.header.source
    if dataset.header.collector is not None:
        lines["collector"] = ", ".join(f"{key}={value}" for key, value in dataset.header.collector.items())
    lines["versions"] = ", ".join(f"{name} {version}" for name, version in dataset.header.versions.items())
    lines["content hash"] = dataset.content_hash
    return lines


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} seen ({part / whole:.1%})"
