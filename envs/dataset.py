"""Trajectory datasets: a table of distinct observations, and integer state ids for every step."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrl.envs import npz
from qrl.envs.errors import DatasetError, LayoutError
from qrl.envs.header import Spaces, TrajectoryHeader
from qrl.envs.layout import Layout
from qrl.envs.registration import ENV_ID
from qrl.envs.world import World
from qrl.envs.worlds.registry import find_world


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(npz.Data):
    """Concatenated episodes of T actions and T + 1 states each; valid by construction.

    observations: (states, observation_dim), the table of distinct states; state ids are its row indices.
    states: (transitions + episodes,) state ids; actions: (transitions,).
    offsets: (episodes + 1,), index of the first action of each episode, then the total.
    terminated, truncated: (episodes,).
    goals: (episodes,) state ids, -1 for episodes without a goal.
    """

    observations: NDArray[np.float32]
    states: NDArray[np.int32]
    actions: NDArray[np.int32]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    goals: NDArray[np.int32]
    header: TrajectoryHeader

    FORMAT = npz.Format(
        "qrl-trajectories",
        1,
        {
            "observations": npz.ArraySpec(np.float32, 2),
            "states": npz.ArraySpec(np.int32, 1),
            "actions": npz.ArraySpec(np.int32, 1),
            "offsets": npz.ArraySpec(np.int64, 1),
            "terminated": npz.ArraySpec(np.bool_, 1),
            "truncated": npz.ArraySpec(np.bool_, 1),
            "goals": npz.ArraySpec(np.int32, 1),
        },
    )
    HEADER = TrajectoryHeader

    @property
    def num_episodes(self) -> int:
        return len(self.terminated)

    @property
    def num_transitions(self) -> int:
        return len(self.actions)

    @property
    def num_samples(self) -> int:
        """What a learner draws from: an epoch."""
        return self.num_transitions

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(episodes,): number of actions per episode."""
        return np.diff(self.offsets)

    @cached_property
    def layout(self) -> Layout | None:
        if self.header.layout is None:
            return None
        return Layout(self.header.layout, self.header.layout_name or "layout")

    @cached_property
    def world(self) -> World | None:
        """The world that the data comes from, if it is known; a registered one is built again, and checked."""
        if self.layout is not None:
            return self.layout.world
        stored = self.header.world
        if stored is None:
            return None
        states = None if self.noisy else len(self.observations)
        world = find_world(stored.name).rebuild(stored.params, states)
        if world.content_hash != stored.hash:
            raise DatasetError(
                f"the world {stored.name} with the parameters in the header of the dataset is no longer the one that "
                "the data comes from: it has other states, transitions or tasks; use the release of qrl or of the "
                "plugin that collected it, or collect the data again"
            )
        self._check_against(world)
        return world

    @property
    def noisy(self) -> bool:
        """Whether every visit of a state has an observation, and so an id, of its own."""
        return self.header.world is not None and self.header.world.noisy

    @property
    def known_world(self) -> World | None:
        """The world, if its states are those of the dataset."""
        return None if self.noisy else self.world

    @cached_property
    def sources(self) -> NDArray[np.int64]:
        """(transitions,): index in `states` of the state before each action; the next index holds the one after."""
        return np.arange(self.num_transitions) + np.repeat(np.arange(self.num_episodes), self.lengths)

    @property
    def starts(self) -> NDArray[np.int64]:
        """(episodes,): index in `states` of the first state of each episode."""
        starts: NDArray[np.int64] = self.offsets[:-1] + np.arange(self.num_episodes)
        return starts

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """(episodes,): index in `states` of the last state of each episode."""
        ends: NDArray[np.int64] = self.offsets[1:] + np.arange(self.num_episodes)
        return ends

    @property
    def last_states(self) -> NDArray[np.int32]:
        """(episodes,): the last state of each episode."""
        return self.states[self.ends]

    def __repr__(self) -> str:
        spaces = self.header.spaces
        return (
            f"Dataset({self.num_episodes:,} episodes, {self.num_transitions:,} transitions, "
            f"{len(self.observations):,} states of dimension {spaces.observation_dim}, {spaces.num_actions} actions, "
            f"from {self.header.source})"
        )

    def first(self, count: int) -> Self:
        """The first `count` episodes: identical to collecting only that many."""
        if not 1 <= count <= self.num_episodes:
            raise DatasetError(f"cannot take the first {count} episodes: there are {self.num_episodes}")
        end = int(self.offsets[count])
        states, goals = self.states[: end + count], self.goals[:count]
        # Observations of single visits belong to their episodes; a table of states belongs to the world.
        rows = 1 + max(states.max(), goals.max()) if self.noisy else len(self.observations)
        return replace(
            self,
            observations=self.observations[:rows],
            states=states,
            actions=self.actions[:end],
            offsets=self.offsets[: count + 1],
            terminated=self.terminated[:count],
            truncated=self.truncated[:count],
            goals=goals,
        )

    @classmethod
    def from_arrays(
        cls,
        observations: ArrayLike,
        actions: ArrayLike,
        lengths: ArrayLike,
        *,
        num_actions: int,
        terminated: ArrayLike | None = None,
        truncated: ArrayLike | None = None,
        goals: ArrayLike | None = None,
        layout: Layout | None = None,
        source: str = "arrays",
    ) -> Self:
        """Build a dataset from arrays of concatenated episodes.

        observations: (transitions + episodes, dim), T + 1 rows per episode of T actions; equal rows are one state.
        actions: (transitions,); lengths: (episodes,), the T of each episode.
        terminated, truncated: (episodes,); default: no episode is terminated, all others are truncated.
        goals: (episodes, dim), observations of the goals, if there are any.
        layout: the layout, if the data comes from qrl/OneWayDoors-v0; state ids are then those of the layout.
        """
        rows = _float_table("observations", observations)
        steps = _integers("lengths", lengths)
        action_ids = _integers("actions", actions)
        episodes = len(steps)
        is_terminated = np.zeros(episodes, bool) if terminated is None else _flags("terminated", terminated, episodes)
        is_truncated = ~is_terminated if truncated is None else _flags("truncated", truncated, episodes)
        if len(rows) != steps.sum() + episodes:
            raise DatasetError(
                f"observations: {len(rows):,} rows, but {episodes:,} episodes with {steps.sum():,} actions in total "
                f"need {steps.sum() + episodes:,}: one more row than actions in every episode"
            )
        goal_rows = rows[:0] if goals is None else _float_table("goals", goals)
        if goals is not None and goal_rows.shape != (episodes, rows.shape[1]):
            raise DatasetError(f"goals: the shape is {goal_rows.shape}, but must be {(episodes, rows.shape[1])}")
        table, inverse = np.unique(np.concatenate([rows, goal_rows]), axis=0, return_inverse=True)
        ids: NDArray[np.int32] = inverse.ravel().astype(np.int32)
        if layout is not None:
            ids = _layout_ids(table, layout)[ids]
            table = layout.observations
        return cls(
            observations=table,
            states=ids[: len(rows)],
            actions=action_ids.astype(np.int32),
            offsets=np.concatenate([[0], np.cumsum(steps)]),
            terminated=is_terminated,
            truncated=is_truncated,
            goals=ids[len(rows) :] if goals is not None else np.full(episodes, -1, np.int32),
            header=TrajectoryHeader(
                source=source,
                spaces=Spaces.from_values(
                    {"observation_dim": rows.shape[1], "num_actions": num_actions}, "from_arrays", DatasetError
                ),
                env_id=None if layout is None else ENV_ID,
                layout=None if layout is None else layout.text,
                layout_name=None if layout is None else layout.name,
            ),
        )

    def validate(self) -> None:
        self._check_lengths()
        self._check_values()
        if self.header.layout is not None:
            self._check_against_layout()

    def _check_lengths(self) -> None:
        episodes = self.num_episodes
        if episodes == 0:
            raise DatasetError("no episodes")
        if len(self.offsets) != episodes + 1 or self.offsets[0] != 0:
            raise DatasetError(f"offsets: {episodes:,} episodes need {episodes + 1:,} offsets, the first of them 0")
        if self.lengths.min() < 1:
            raise DatasetError(f"offsets: episode {int(self.lengths.argmin())} has no actions; leave it out")
        for name, expected in (
            ("truncated", episodes),
            ("goals", episodes),
            ("actions", int(self.offsets[-1])),
            ("states", int(self.offsets[-1]) + episodes),
        ):
            if len(getattr(self, name)) != expected:
                raise DatasetError(f"{name}: {len(getattr(self, name)):,} entries, but must have {expected:,}")

    def _check_values(self) -> None:
        spaces = self.header.spaces
        if self.observations.shape[1] != spaces.observation_dim:
            raise DatasetError(
                f"observations: {self.observations.shape[1]} columns, but the header declares {spaces.observation_dim}"
            )
        if not np.isfinite(self.observations).all():
            raise DatasetError("observations: all values must be finite")
        for name, low, high in (
            ("states", 0, len(self.observations)),
            ("goals", -1, len(self.observations)),
            ("actions", 0, spaces.num_actions),
        ):
            values = getattr(self, name)
            if values.min() < low or values.max() >= high:
                raise DatasetError(f"{name}: all values must be from {low} to {high - 1}")

    def _check_against_layout(self) -> None:
        try:
            layout = self.layout
        except LayoutError as error:
            raise DatasetError(f"header key layout: {error}") from error
        assert layout is not None
        self._check_against(layout.world)

    def _shows(self, world: World) -> bool:
        return np.array_equal(self.observations, world.observations)

    def _check_against(self, world: World) -> None:
        """Refuse observations, transitions and ends of episodes that the world does not have."""
        kind = "world" if self.header.layout is None else "layout"
        spaces = self.header.spaces
        same = (spaces.observation_dim, spaces.num_actions) == (world.observation_dim, world.num_actions)
        if not same or self.noisy != world.noisy or not (self.noisy or self._shows(world)):
            raise DatasetError(f"observations or actions do not match the {kind} in the header")
        if self.noisy:  # its states are not known
            return
        before, after = self.states[self.sources], self.states[self.sources + 1]
        illegal = np.flatnonzero(~world.possible(before, self.actions, after))
        if len(illegal):
            episode = int(np.searchsorted(self.offsets, illegal[0], "right")) - 1
            step = int(illegal[0] - self.offsets[episode])
            raise DatasetError(
                f"states: {len(illegal):,} transitions are impossible in the {kind}, "
                f"the first in episode {episode}, step {step}"
            )
        off_goal = np.flatnonzero(self.terminated & (self.last_states != self.goals))
        if len(off_goal):
            raise DatasetError(f"terminated: episode {int(off_goal[0])} is terminated but does not end at its goal")


def _float_table(name: str, values: ArrayLike) -> NDArray[np.float32]:
    try:
        table = np.asarray(values, np.float32)
    except (ValueError, TypeError) as error:
        raise DatasetError(f"{name}: not a table of numbers ({error})") from None
    if table.ndim != 2:
        raise DatasetError(f"{name}: must have 2 dimensions (rows, features), not {table.ndim}")
    return table + np.float32(0)  # turns -0 into 0, since rows are compared as bytes


def _integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if (
        array.ndim != 1
        or not np.issubdtype(array.dtype, np.integer)
        or (array.size and (array.min() <= -(2**31) or array.max() >= 2**31))
    ):
        raise DatasetError(f"{name}: must be a 1-dimensional array of integers below 2**31")
    return array.astype(np.int64)


def _flags(name: str, values: ArrayLike, episodes: int) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.shape != (episodes,) or array.dtype != np.bool_:
        raise DatasetError(
            f"{name}: must be {episodes:,} booleans, one per episode, not {array.dtype} of shape {array.shape}"
        )
    return array


def _layout_ids(table: NDArray[np.float32], layout: Layout) -> NDArray[np.int32]:
    """(rows,): the layout's state id for every row of `table`."""
    states: dict[bytes, int] = {row.tobytes(): state for state, row in enumerate(layout.observations)}
    ids = np.array([states.get(row.tobytes(), -1) for row in table], np.int32)
    if len(ids) and ids.min() < 0:
        raise DatasetError(f"observations: {table[ids.argmin()][:2]}... is not a state of the layout {layout.name}")
    return ids
