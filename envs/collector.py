"""The collector: simulates blocks of episodes on the transition table."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializeAsAny, ValidatorFunctionWrapHandler, create_model, field_validator, model_validator
from tqdm import tqdm

from qrl.common.errors import RegistryError
from qrl.common.seeds import derived_seed
from qrl.common.settings import Settings
from qrl.envs.behaviours import BEHAVIOURS, NO_GOAL
from qrl.envs.dataset import Dataset
from qrl.envs.errors import WorldError
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.header import Spaces, TrajectoryHeader, WorldHeader
from qrl.envs.layout import builtin_layouts, load_layout
from qrl.envs.registration import ENV_ID
from qrl.envs.world import AnyIds, Ids, World
from qrl.envs.worlds.registry import WorldSettings, builtin_worlds, find_world

BLOCK_EPISODES = 1024  # episodes simulated together; changing it changes the data of every seed
# What a dataset records: the keys that its policy uses. Data of the default policy has the header of release 0.2.
_USED = {
    "epsilon-greedy": {"epsilon", "max_steps", "seed"},
    "navigate": {"policy", "epsilon", "max_steps", "seed"},
    "stitch": {"policy", "epsilon", "distance", "max_steps", "seed"},
    "explore": {"policy", "hold", "max_steps", "seed"},
}
_WORLD = "registered world, instead of a layout: world=NAME world.KEY=VALUE; list-worlds shows them"


class CollectorSettings(Settings):
    """Data comes from a layout, or from a registered world with keys of its own."""

    CONFIGS = "data"
    NAMED = ("world",)

    layout: str = Field("six-rooms", description="name of a built-in layout or path of a text file")
    world: SerializeAsAny[WorldSettings] | None = Field(None, description=_WORLD)
    trajectories: int = Field(1000, ge=1, le=10_000_000, description="number of episodes")
    policy: Literal["epsilon-greedy", "navigate", "stitch", "explore"] = Field(
        "epsilon-greedy",
        description="epsilon-greedy: to a goal; navigate: a new goal on arrival; stitch: from any state to one that is "
        "`distance` steps away; explore: random actions, each held for `hold` steps",
    )
    epsilon: float = Field(0.6, ge=0, le=1, description="probability of a random action; else along a shortest path")
    distance: int = Field(4, ge=1, le=10_000, description="steps to the goals of policy=stitch")
    hold: int = Field(5, ge=1, le=10_000, description="steps for which policy=explore holds an action")
    max_steps: int = Field(200, ge=1, le=10_000, description="maximum number of steps per episode")
    seed: int = Field(0, ge=0, lt=2**63, description="random seed; fewer trajectories are a prefix of more")

    @field_validator("world", mode="wrap")
    @classmethod
    def _of_its_name(cls, value: Any, validate: ValidatorFunctionWrapHandler) -> WorldSettings | None:
        values = {"name": value} if isinstance(value, str) else value
        if isinstance(values, Mapping):
            return _settings_of(values).model_validate(values)
        checked: WorldSettings | None = validate(value)
        return checked

    @model_validator(mode="after")
    def _one_world(self) -> Self:
        default = type(self).model_fields["layout"].default
        if self.world is not None and self.layout != default:
            raise ValueError(f"layout and world both say where data comes from: remove layout={self.layout}")
        return self

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> type[Self]:
        """With the keys of the world that the values name."""
        world = values.get("world")
        named = {"name": world} if isinstance(world, str) else world
        return _with_world(cls, _settings_of(named)) if isinstance(named, Mapping) else cls

    @classmethod
    def names(cls, key: str) -> list[str]:
        known = {"layout": builtin_layouts, "world": builtin_worlds}
        return known[key]() if key in known else super().names(key)

    @property
    def world_name(self) -> str:
        return Path(self.layout).stem if self.world is None else self.world.name


def _settings_of(values: Mapping[str, Any]) -> type[WorldSettings]:
    name = values.get("name")
    if not isinstance(name, str):
        raise RegistryError("world.name: name the world: world=NAME; list-worlds shows them")
    return find_world(name).settings


@cache
def _with_world(cls: type[CollectorSettings], world: type[WorldSettings]) -> type[Any]:
    """The settings with a field of exactly this type for the world."""
    return create_model(cls.__name__, __base__=cls, world=(world, Field(world(), description=_WORLD)))


def build_world(settings: CollectorSettings) -> tuple[World, dict[str, Any]]:
    """The world that data is collected in, and what the header of the dataset says of it."""
    if settings.world is None:
        layout = load_layout(settings.layout)
        return layout.world, {"env_id": ENV_ID, "layout": layout.text, "layout_name": layout.name}
    resolved = settings.world.resolved()
    world = find_world(resolved.name).build(resolved)
    header = WorldHeader(name=resolved.name, params=resolved.params, hash=world.content_hash, noisy=world.noisy)
    return world, {"world": header}


def collect(settings: CollectorSettings, progress: bool = False) -> Dataset:
    """Simulate episodes. `progress` shows a progress bar if stderr is a terminal."""
    world, origin = build_world(settings)
    spaces = Spaces.from_values(
        {"observation_dim": world.observation_dim, "num_actions": world.num_actions}, f"world {world.name}", WorldError
    )
    truth = ground_truth(world)
    truth.check_tasks()
    num_blocks = -(-settings.trajectories // BLOCK_EPISODES)
    total = num_blocks * BLOCK_EPISODES
    with tqdm(total=total, unit=" trajectories", disable=None if progress else True, leave=False) as bar:
        blocks = []
        for index in range(num_blocks):
            blocks.append(_simulate_block(truth, settings, index))
            bar.update(BLOCK_EPISODES)
    states, actions, lengths, goals, reached = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    observations = world.observations
    if world.noisy:
        observations, states, goals = _observe_visits(world, settings.seed, states, lengths, goals)
    dataset = Dataset(
        observations=observations,
        states=states,
        actions=actions,
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        terminated=reached,
        truncated=~reached,
        goals=goals.astype(np.int32),
        header=TrajectoryHeader(
            source=f"the {settings.policy} collector",
            spaces=spaces,
            **origin,
            collector=settings.model_dump(include=_USED[settings.policy]),
        ),
    )
    return dataset.first(settings.trajectories)


def collect_elsewhere(dataset: Dataset, overrides: Sequence[str]) -> Dataset:
    """One episode in the world of a dataset with other parameters, KEY=VALUE, such as a held-out part of the world."""
    header = dataset.header.world
    if header is None or dataset.world is None:  # building it checks that its parameters name no file
        raise WorldError("--world changes the parameters of a registered world, and the dataset has none")
    changes = find_world(header.name).settings.read(None, overrides)
    values = {"world": {"name": header.name, **header.params, **changes}, "trajectories": 1}
    return collect(CollectorSettings.from_values(values, "--world"))


def _observe_visits(
    world: World, seed: int, states: AnyIds, lengths: Ids, goals: AnyIds
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int32]]:
    """An observation of every visit and, after those of an episode, of its goal; the ids of visits and of goals."""
    ends = np.cumsum(lengths + 2)  # T + 1 visits, and the goal
    goal_rows = ends - 1
    visited = np.ones(int(ends[-1]), bool)
    visited[goal_rows] = False
    shown = np.empty(len(visited), np.int64)
    shown[visited], shown[~visited] = states, np.maximum(goals, 0)
    rng = np.random.default_rng(derived_seed(seed, "observations"))
    ids = np.where(goals < 0, NO_GOAL, goal_rows)
    return world.observe(shown, rng), np.flatnonzero(visited).astype(np.int32), ids.astype(np.int32)


def _simulate_block(truth: GroundTruth, settings: CollectorSettings, index: int) -> tuple[NDArray[np.generic], ...]:
    """Concatenated states and actions of one block of episodes, and per episode its length, goal and success."""
    # Always a whole block, so that the first n episodes do not depend on how many follow.
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(index,)))
    behaviour = BEHAVIOURS[settings.policy](truth, settings, rng, BLOCK_EPISODES)
    state = behaviour.states.copy()
    states = np.empty((settings.max_steps + 1, BLOCK_EPISODES), np.int32)
    actions = np.empty((settings.max_steps, BLOCK_EPISODES), np.int32)
    lengths = np.full(BLOCK_EPISODES, settings.max_steps)
    states[0] = state
    active = np.arange(BLOCK_EPISODES)
    for step in range(settings.max_steps):
        action = behaviour.act(step, active, state[active])
        state[active] = truth.world.next_states(state[active], action, rng)
        actions[step, active] = action
        states[step + 1, active] = state[active]
        arrived = behaviour.arrive(active, state[active])
        lengths[active[arrived]] = step + 1
        active = active[~arrived]
        if not len(active):
            break
    steps = np.arange(settings.max_steps + 1)
    return (
        states.T[steps <= lengths[:, None]],
        actions.T[steps[:-1] < lengths[:, None]],
        lengths,
        behaviour.goals,
        state == behaviour.goals,
    )
