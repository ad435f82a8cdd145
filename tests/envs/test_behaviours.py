"""The policies that collect data, on layouts and other worlds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra

import qrl
from qrl.envs.card import card
from qrl.envs.collector import BLOCK_EPISODES
from qrl.envs.dataset import Dataset
from qrl.envs.errors import WorldError
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from qrl.envs.pictures import coverage_picture

POLICIES = ["epsilon-greedy", "navigate", "stitch", "explore"]


@pytest.mark.parametrize("policy", POLICIES)
def test_reproducible_nested_and_valid(policy: str, tmp_path: Path) -> None:
    settings = {"policy": policy, "max_steps": 40, "seed": 3}
    more = qrl.collect("traps", trajectories=BLOCK_EPISODES + 40, **settings)
    fewer = qrl.collect("traps", trajectories=30, **settings)
    assert more.first(30).content_hash == fewer.content_hash
    assert qrl.collect("traps", trajectories=30, **{**settings, "seed": 4}).content_hash != fewer.content_hash
    fewer.save(tmp_path / "d.npz")
    assert Dataset.load(tmp_path / "d.npz").content_hash == fewer.content_hash  # replays every transition
    assert fewer.header.source == f"the {policy} collector"
    assert ("policy" in card(fewer)["collector"]) == (policy != "epsilon-greedy")
    coverage_picture(fewer, tmp_path / "coverage.png")


def test_navigate_goes_on_to_new_goals() -> None:
    dataset = qrl.collect("six-rooms", policy="navigate", epsilon=0, trajectories=50, max_steps=300)
    assert (dataset.lengths == 300).all()
    assert (dataset.goals == -1).all()
    assert not dataset.terminated.any()
    truth = ground_truth(load_layout("six-rooms"))
    # Without noise, an episode is a chain of shortest paths between goals: it visits one every 45 steps at least.
    for episode in range(50):
        first = int(dataset.starts[episode])
        visits = np.flatnonzero(np.isin(dataset.states[first : first + 301], truth.world.goals))
        assert np.diff(visits, prepend=0).max() <= 45
    assert len(set(dataset.last_states.tolist())) > 20


def test_navigate_stays_where_there_is_no_other_goal() -> None:
    dataset = qrl.collect("####\n#SG#\n####", policy="navigate", epsilon=0, trajectories=3, max_steps=9)
    assert (dataset.last_states == 1).all()


def test_stitch_goes_exactly_so_far() -> None:
    dataset = qrl.collect("six-rooms", policy="stitch", distance=4, epsilon=0, trajectories=2000)
    truth = ground_truth(load_layout("six-rooms"))
    starts = dataset.states[dataset.starts]
    assert (truth.distances[starts, dataset.goals] == 4).all()
    assert (dataset.lengths == 4).all()
    assert dataset.terminated.all()
    assert len(np.unique(starts)) == 241  # from everywhere
    _, counts = np.unique(np.stack([starts, dataset.goals]), axis=1, return_counts=True)
    assert counts.max() < 20
    with pytest.raises(WorldError, match="exactly 9 steps away; choose another distance"):
        qrl.collect("####\n#SG#\n####", policy="stitch", distance=9)


def test_explore_holds_its_actions() -> None:
    dataset = qrl.collect("six-rooms", policy="explore", hold=3, trajectories=400, max_steps=60)
    assert (dataset.goals == -1).all()
    held = dataset.actions.reshape(400, 20, 3)
    assert (held == held[..., :1]).all()
    fractions = np.bincount(held[..., 0].ravel(), minlength=4) / held[..., 0].size
    np.testing.assert_allclose(fractions, 0.25, atol=0.02)
    assert set(dataset.states[dataset.starts]) <= set(load_layout("six-rooms").starts)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("world", [{"name": "teleport", "slip": 0.1}, {"name": "minigrid"}])
def test_other_worlds(policy: str, world: dict[str, object]) -> None:
    dataset = qrl.collect(world=world, policy=policy, trajectories=20, max_steps=50)
    assert dataset.world is not None  # which checks every transition


@pytest.mark.parametrize("policy", POLICIES)
def test_settings_are_recorded(policy: str) -> None:
    from qrl.agents.runs.problems import OfflineRL

    dataset = qrl.collect("traps", policy=policy, trajectories=10, max_steps=30, distance=5, hold=2)
    settings = OfflineRL().made_from(dataset)
    assert settings is not None
    assert (settings.policy, settings.max_steps) == (policy, 30)
    assert settings.distance == (5 if policy == "stitch" else 4)
    assert settings.hold == (2 if policy == "explore" else 5)


def test_stitch_takes_its_starts_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data of a seed does not depend on their size."""
    whole = qrl.collect("traps", policy="stitch", trajectories=200)
    monkeypatch.setattr("qrl.envs.behaviours._PAIRS_AT_ONCE", 1000)  # nine starts
    rows: list[int] = []

    def recorded(graph: Any, *, unweighted: bool, indices: np.ndarray, limit: int) -> np.ndarray:
        rows.append(len(indices))
        return dijkstra(graph, unweighted=unweighted, indices=indices, limit=limit)

    monkeypatch.setattr("qrl.envs.behaviours.dijkstra", recorded)
    assert qrl.collect("traps", policy="stitch", trajectories=200).content_hash == whole.content_hash
    assert max(rows) == 9


def test_navigate_refuses_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrl.envs.behaviours._MAX_PAIRS", 1000)
    with pytest.raises(WorldError, match=r"policy=navigate: traps has 107 states and \d+ goals, more than 1,000 pairs"):
        qrl.collect("traps", policy="navigate")
