import gc
import weakref

import numpy as np
import pytest

import qrl
from qrl import make_world
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.envs.errors import LayoutError, WorldError
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.layout import Layout, load_layout
from qrl.envs.world import World
from qrl.envs.worlds.registry import find_world
from qrl.envs.worlds.unseen_doors import _configured, _solvable

STATES = 241  # of six-rooms


def configurations(world: World) -> set[tuple[float, ...]]:
    return set(map(tuple, world.observations[:, 2:].tolist()))


def test_the_solvable_configurations_of_six_rooms() -> None:
    layout = load_layout("six-rooms")
    solvable = [_configured(layout, number) for number in _solvable(layout)]
    assert len(solvable) == 196
    assert sum(GroundTruth(configuration).strongly_connected for configuration in solvable) == 36
    assert layout in solvable


def test_splits_do_not_overlap_and_fewer_are_some_of_more() -> None:
    train, more, test = (
        make_world("unseen-doors", configurations=count, split=split)
        for count, split in ((10, "train"), (150, "train"), (10, "test"))
    )
    assert (train.num_states, more.num_states, test.num_states) == (10 * STATES, 150 * STATES, 40 * STATES)
    assert len(configurations(train)) == 10
    assert configurations(train) < configurations(more)
    assert not configurations(more) & configurations(test)
    assert make_world("unseen-doors", seed=1) != train
    assert not train.notices


def test_the_truth_is_that_of_each_configuration() -> None:
    world = make_world("unseen-doors", configurations=3)
    truth = GroundTruth(world)
    six_rooms = load_layout("six-rooms")
    solvable = [_configured(six_rooms, number) for number in _solvable(six_rooms)]
    by_headings = {layout.observations[0, 2:].tobytes(): layout for layout in solvable}
    for first in range(0, 3 * STATES, STATES):
        layout = by_headings[world.observations[first, 2:].tobytes()]
        own = slice(first, first + STATES)
        np.testing.assert_array_equal(truth.distances[own, own], ground_truth(layout).distances)
        others = np.delete(np.arange(3 * STATES), np.arange(first, first + STATES))
        assert np.isinf(truth.distances[own][:, others]).all()
    starts, goals = truth.sample_tasks(np.random.default_rng(0), 500)
    assert (starts // STATES == goals // STATES).all()
    assert len(truth.all_tasks()[0]) == 3 * 9180


def test_held_out_configurations_are_evaluated_by_samples() -> None:
    dataset = qrl.collect(world={"name": "unseen-doors", "split": "test"}, trajectories=5)
    evaluator = Evaluator(dataset)
    assert evaluator.protocol == "paper"
    assert evaluator.score(evaluator.reference("oracle")).success_rate == 1


def test_mistakes() -> None:
    with pytest.raises(WorldError, match="160 configurations and 40 held out are more than the 196 of six-rooms"):
        make_world("unseen-doors", configurations=160)
    with pytest.raises(WorldError, match="has 0 doors"):
        make_world("unseen-doors", layout="####\n#SG#\n####")
    with pytest.raises(LayoutError, match="world unseen-doors: '/etc/hostname' is neither"):
        find_world("unseen-doors").rebuild({"layout": "/etc/hostname"})


def test_no_more_states_than_can_be_tried() -> None:
    rows = ["#" * 60, "#S" + ">" * 12 + "." * 44 + "G#", *["#" + "." * 58 + "#"] * 9, "#" * 60]
    message = (
        "the 4,096 configurations of layout have 2,375,680 states, more than 2,097,152; choose a layout with fewer"
    )
    with pytest.raises(WorldError, match=message):
        make_world("unseen-doors", layout="\n".join(rows))


def test_the_layouts_that_were_tried_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def recorded(layout: Layout, number: int) -> Layout:
        configured = _configured(layout, number)
        tried.append(weakref.ref(configured))
        return configured

    monkeypatch.setattr("qrl.envs.worlds.unseen_doors._configured", recorded)
    _solvable.cache_clear()
    _solvable(load_layout("six-rooms"))
    gc.collect()
    assert len(tried) == 2**10
    assert not any(reference() for reference in tried)
