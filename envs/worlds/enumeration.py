"""Breadth-first enumeration of the states of a MiniGrid environment through its own `step`."""

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX
from minigrid.core.world_object import Wall, WorldObj
from numpy.typing import NDArray

from qrl.envs.errors import WorldError

Key = tuple[Any, ...]
Ended = str  # "" while the episode goes on, else "success" or "failure"


class Snapshot(NamedTuple):
    """From which the environment is set back: its cells, the fields of its objects, and the agent."""

    cells: list[WorldObj | None]
    fields: list[tuple[WorldObj, dict[str, Any]]]
    position: tuple[int, int]
    direction: int
    carrying: WorldObj | None


class Enumeration:
    """All states that are reached from some resets, numbered in the order in which they are found."""

    def __init__(self, env: Any, max_states: int) -> None:
        self.env = env
        self.max_states = max_states
        self.env.max_steps = 2**31  # the time limit belongs to the protocol, not to the world
        self.env.gen_obs = dict  # the agent's partial view is not needed
        self._ids: dict[Key, int] = {}
        # Of the reset that is being explored; its objects are kept, so that their ids stay theirs.
        self._objects: dict[int, WorldObj] = {}
        self._keys: dict[Key, Key] = {}
        self._observations: list[NDArray[np.uint8]] = []
        self._positions: list[tuple[int, int]] = []
        self._ended: list[Ended] = []
        self._next: list[list[int]] = []
        self.starts: list[int] = []
        self._chances = [np.random.default_rng(seed) for seed in (1, 2)]

    def __len__(self) -> int:
        return len(self._next)

    @property
    def observations(self) -> NDArray[np.float32]:
        return np.stack(self._observations).reshape(len(self), -1).astype(np.float32)

    @property
    def transitions(self) -> NDArray[np.int64]:
        return np.array(self._next)

    @property
    def cells(self) -> NDArray[np.int64]:
        return np.array(self._positions)

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        return np.array([ended == "success" for ended in self._ended])

    def explore(self, seed: int) -> None:
        """Add the states that the reset with this seed leads to."""
        self.env.reset(seed=seed)
        self._objects, self._keys = {}, {}
        queue: deque[tuple[int, Snapshot]] = deque()
        start = self._visit("", queue)
        if start not in self.starts:
            self.starts.append(start)
        while queue:
            state, snapshot = queue.popleft()
            self._next[state] = [self._step(snapshot, action, queue) for action in range(self.env.action_space.n)]

    def _step(self, snapshot: Snapshot, action: int, queue: deque[tuple[int, Snapshot]]) -> int:
        """The state after an action, which is taken twice with different random numbers."""
        outcomes = []
        for rng in self._chances:
            self._restore(snapshot)
            self.env.np_random = rng
            _, reward, terminated, _, _ = self.env.step(action)
            ended = "" if not terminated else "success" if reward > 0 else "failure"
            outcomes.append((self._key(), ended))
        if outcomes[0] != outcomes[1]:
            raise self._error(
                f"its step is not deterministic: action {action} leads to different states from one state"
            )
        return self._visit(ended, queue)

    def _visit(self, ended: Ended, queue: deque[tuple[int, Snapshot]]) -> int:
        """The number of the state that the environment is in."""
        key = (*self._key(), ended)
        state = self._ids.setdefault(key, len(self._ids))
        if state == len(self._next):
            if state == self.max_states:
                raise self._error(
                    f"it has more than {self.max_states:,} states; raise world.max_states if the memory suffices, or "
                    "choose a smaller environment"
                )
            self._observations.append(self._observation())
            self._positions.append(_position(self.env))
            self._ended.append(ended)
            self._next.append([state] * self.env.action_space.n)  # where it has ended, it stays
            if not ended:
                queue.append((state, self._snapshot()))
        return state

    def _observation(self) -> NDArray[np.uint8]:
        """As MiniGrid's FullyObsWrapper."""
        image: NDArray[np.uint8] = self.env.grid.encode()
        image[_position(self.env)] = (OBJECT_TO_IDX["agent"], COLOR_TO_IDX["red"], self.env.agent_dir)
        return image

    def _key(self) -> Key:
        """What the environment's future depends on. Objects are told apart even if they look the same."""
        env = self.env
        looks = tuple(map(_look, self._objects.values()))
        # By identity, which is fast; described only once.
        found = (*map(id, env.grid.grid), _position(env), int(env.agent_dir), id(env.carrying), looks)
        if found not in self._keys:
            cells = tuple((index, self._describe(item)) for index, item in enumerate(env.grid.grid) if item is not None)
            self._keys[found] = (cells, _position(env), int(env.agent_dir), self._describe(env.carrying))
        return self._keys[found]

    def _describe(self, item: WorldObj | None) -> Key | None:
        """The look of an object and its number among those of the reset; of walls, which are many, the look."""
        if item is None or isinstance(item, Wall):
            return None if item is None else _look(item)
        self._objects.setdefault(id(item), item)
        return list(self._objects).index(id(item)), *_look(item), self._describe(item.contains)

    def _snapshot(self) -> Snapshot:
        items = [item for item in (*self.env.grid.grid, self.env.carrying) if _may_change(item)]
        items += [item.contains for item in items if item.contains is not None]
        fields = [(item, dict(vars(item))) for item in items]
        return Snapshot(
            list(self.env.grid.grid), fields, _position(self.env), int(self.env.agent_dir), self.env.carrying
        )

    def _restore(self, snapshot: Snapshot) -> None:
        self.env.grid.grid = list(snapshot.cells)
        for item, values in snapshot.fields:
            vars(item).clear()
            vars(item).update(values)
        self.env.agent_pos, self.env.agent_dir = snapshot.position, snapshot.direction
        self.env.carrying, self.env.step_count = snapshot.carrying, 0

    def _error(self, message: str) -> WorldError:
        name = self.env.spec.id if self.env.spec is not None else type(self.env).__name__
        return WorldError(f"world minigrid: {name} cannot be enumerated: {message}")


def _look(item: WorldObj) -> Key:
    return item.type, item.color, getattr(item, "is_open", None), getattr(item, "is_locked", None)


def _may_change(item: WorldObj | None) -> bool:
    return item is not None and not isinstance(item, Wall)


def _position(env: Any) -> tuple[int, int]:
    x, y = env.agent_pos
    return int(x), int(y)
