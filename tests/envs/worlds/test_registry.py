from dataclasses import replace

import numpy as np
import pytest

import qrl
from qrl import list_worlds, make_world, register_world
from qrl.common.errors import ConfigError, RegistryError
from qrl.common.limits import MAX_ACTIONS
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError, LayoutError, WorldError
from qrl.envs.layout import load_layout
from qrl.envs.world import World
from qrl.envs.worlds.registry import _BUILTIN, WorldSettings, find_world
from tests.envs.worlds.toys import RingSettings, ring

pytestmark = pytest.mark.usefixtures("restored_registry")


def test_all_built_in_worlds_are_listed() -> None:
    assert set(_BUILTIN) <= set(list_worlds())
    for name in _BUILTIN:
        registration = find_world(name)
        assert (registration.name, registration.origin, registration.settings().name) == (name, "qrl", name)
        assert registration.meaning


def test_a_plugins_world() -> None:
    register_world("ring", RingSettings)(ring)
    registration = find_world("ring")
    assert registration.origin == ring.__module__
    assert registration.meaning == "A ring with a step in one direction, and one that stays."
    world = make_world("ring", states=4)
    assert world.transitions.tolist() == [[0, 1], [1, 2], [2, 3], [3, 0]]


@pytest.mark.parametrize("settings", [None, int, RingSettings()])
def test_a_world_without_settings_is_told_how_to_have_some(settings: object) -> None:
    with pytest.raises(RegistryError, match=r"^world ring: ring has no settings; write class RingSettings\(WorldSett"):
        register_world("ring", settings)(ring)  # type: ignore[arg-type]


def test_bad_registrations() -> None:
    class Required(WorldSettings):
        size: int

    with pytest.raises(RegistryError, match="the key size of Required has no default"):
        register_world("ring", Required)(ring)
    with pytest.raises(RegistryError, match="is not a function"):
        register_world("ring", RingSettings)("ring")  # type: ignore[type-var]
    with pytest.raises(RegistryError, match="the world name 'layout' is taken by qrl"):
        register_world("layout", RingSettings)(ring)
    with pytest.raises(RegistryError, match=r"unknown world 'rong'"):
        make_world("rong")


def test_worlds_that_share_the_class_of_their_settings() -> None:
    for name in ("ring", "circle", "circle"):  # the last one as when a notebook cell is run twice
        register_world(name, RingSettings)(ring)
    assert [find_world(name).settings().name for name in ("ring", "circle")] == ["ring", "circle"]
    assert RingSettings().name == "ring"
    for name in ("ring", "circle"):
        header = qrl.collect(world={"name": name, "states": 4}, trajectories=1).header.world
        assert header is not None
        assert (header.name, header.params) == (name, {"states": 4, "fault": "none"})


def test_worlds_that_cannot_be_built() -> None:
    register_world("ring", RingSettings)(ring)
    with pytest.raises(RegistryError, match="world ring: ring cannot be built: KeyError: 'fault'"):
        make_world("ring", fault="raises")
    with pytest.raises(RegistryError, match="world ring: ring returns a RingSettings, not a World"):
        make_world("ring", fault="other type")
    with pytest.raises(ConfigError, match="world ring: states: input should be greater than or equal to 2"):
        make_world("ring", states=1)


def test_a_dataset_rebuilds_its_world(tmp_path: object) -> None:
    register_world("ring", RingSettings)(ring)
    dataset = qrl.collect(world={"name": "ring", "states": 5}, trajectories=10)
    header = dataset.header.world
    assert header is not None
    assert (header.name, header.params) == ("ring", {"states": 5, "fault": "none"})
    dataset.save(f"{tmp_path}/ring.npz")
    loaded = Dataset.load(f"{tmp_path}/ring.npz")
    assert loaded.world == make_world("ring", states=5)
    assert loaded.content_hash == dataset.content_hash


def test_keys_of_a_plugin_mean_what_it_wants() -> None:
    """Also those of a name that one of our worlds has."""

    class LimitedSettings(RingSettings):
        max_states: int = 4

    def limited(settings: LimitedSettings) -> World:
        return ring(settings.model_copy(update={"states": settings.max_states // 2}))

    register_world("limited", LimitedSettings)(limited)
    dataset = qrl.collect(world={"name": "limited", "max_states": 8}, trajectories=10)
    assert dataset.world == make_world("limited", max_states=8)


def test_more_actions_than_a_dataset_can_declare() -> None:
    def wide(settings: RingSettings) -> World:
        world = ring(settings)
        return replace(world, transitions=np.tile(world.transitions, MAX_ACTIONS))

    register_world("wide", RingSettings)(wide)
    with pytest.raises(WorldError, match="world ring: num_actions: input should be less than or equal to 65536"):
        qrl.collect(world="wide", trajectories=1)


def test_a_world_that_is_no_longer_the_same() -> None:
    register_world("ring", RingSettings)(ring)
    dataset = qrl.collect(world={"name": "ring", "fault": "random"}, trajectories=10)
    with pytest.raises(
        DatasetError, match="the world ring with the parameters in the header of the dataset is no longe"
    ):
        _ = dataset.world


def test_data_that_its_world_does_not_have() -> None:
    register_world("ring", RingSettings)(ring)
    dataset = qrl.collect(world="ring", trajectories=3, epsilon=0)
    header = dataset.header
    other = Dataset(**{**dataset.arrays, "actions": 1 - dataset.actions}, header=header)
    with pytest.raises(DatasetError, match="transitions are impossible in the world, the first in episode 0, step 0"):
        _ = other.world
    other = Dataset(**{**dataset.arrays, "observations": dataset.observations + 1}, header=header)
    with pytest.raises(DatasetError, match="observations or actions do not match the world in the header"):
        _ = other.world


def test_params_of_a_dataset_are_checked_and_read_no_file() -> None:
    text = load_layout("traps").text
    registration = find_world("layout")
    assert registration.rebuild({"layout": text}) == load_layout("traps").world
    with pytest.raises(LayoutError, match="neither the text nor the name of a layout"):
        registration.rebuild({"layout": "/etc/hostname"})
    with pytest.raises(DatasetError, match="the world layout in the header of the dataset: unknown key 'size'"):
        registration.rebuild({"size": 3})


def test_the_same_data_from_a_layout_and_from_its_world() -> None:
    layout, world = (
        qrl.collect("traps", trajectories=20),
        qrl.collect(world={"name": "layout", "layout": "traps"}, trajectories=20),
    )
    for key, array in layout.arrays.items():
        np.testing.assert_array_equal(array, world.arrays[key])
    assert layout.world == world.world
    assert layout.header.world is None
