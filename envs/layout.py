"""Layouts: worlds written as text, with the states, doors and observations derived from it.

`#` wall, `.` floor, `S` start, `G` goal, `^ > v <` one-way door. The border must be walls. States are the non-wall
cells, numbered row by row.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qrl.common.errors import FileError
from qrl.common.files import read_text
from qrl.common.names import unknown_name
from qrl.common.text import clip
from qrl.envs.errors import LayoutError
from qrl.envs.world import World

# Actions 0 to 3: up, right, down, left, as (dx, dy) with y pointing down.
MOVES = np.array([(0, -1), (1, 0), (0, 1), (-1, 0)])
DOORS = "^>v<"  # door a is passable by action a and blocks the opposite action
CHARACTERS = "#.SG" + DOORS
DOOR_SLOTS = 16
OBSERVATION_DIM = 2 + DOOR_SLOTS
MAX_STATES = 20_000  # the all-pairs distance table grows quadratically: 1.6 GB at this size


def opposite(action: int) -> int:
    return (action + 2) % len(MOVES)


def normalized(text: str) -> str:
    """A text without blank lines around it, blanks at the ends of its lines, and foreign line breaks."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


@dataclass(frozen=True)
class Layout:
    """A valid layout; everything is derived from `text`.

    `name` appears only in messages and titles: layouts with the same text are equal.
    """

    text: str
    name: str = "layout"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", normalized(self.text))
        self._check()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Layout({self.name!r}, {self.width}x{self.height}, {len(self.cells)} states, {len(self.doors)} doors)"

    def _check(self) -> None:
        rows = self.text.split("\n")
        width, height = len(rows[0]), len(rows)
        for y, row in enumerate(rows, 1):
            if len(row) != width:
                raise LayoutError(
                    f"{self.name}: row {y} has {len(row)} characters but row 1 has {width}; make them equal"
                )
            for x, character in enumerate(row, 1):
                if character not in CHARACTERS:
                    raise LayoutError(
                        f"{self.name}: unknown character {character!r} in row {y}, column {x}; use only {CHARACTERS}"
                    )
                if character != "#" and (x in (1, width) or y in (1, height)):
                    raise LayoutError(
                        f"{self.name}: {character!r} in row {y}, column {x} lies on the border, which must be #"
                    )
        counts = Counter(self.text)
        for character, meaning in (("S", "start"), ("G", "goal")):
            if not counts[character]:
                raise LayoutError(f"{self.name}: no {meaning}; mark at least one cell with {character}")
        doors = sum(counts[door] for door in DOORS)
        if doors > DOOR_SLOTS:
            raise LayoutError(
                f"{self.name}: {doors} one-way doors, but observations encode at most {DOOR_SLOTS}; use fewer"
            )
        states = sum(counts[character] for character in CHARACTERS) - counts["#"]
        if states > MAX_STATES:
            raise LayoutError(f"{self.name}: {states:,} states, but at most {MAX_STATES:,} are supported")

    @property
    def width(self) -> int:
        return self.text.find("\n") if "\n" in self.text else len(self.text)

    @property
    def height(self) -> int:
        return self.text.count("\n") + 1

    @cached_property
    def grid(self) -> NDArray[np.str_]:
        """The characters, indexed [y, x]."""
        return np.array([list(row) for row in self.text.split("\n")])

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """(states, 2): (x, y) of every state."""
        return np.argwhere(self.grid != "#")[:, ::-1].copy()

    @cached_property
    def state_ids(self) -> NDArray[np.int64]:
        """Indexed [y, x]: the state id of every cell, -1 for walls."""
        ids = np.full(self.grid.shape, -1)
        ids[self.cells[:, 1], self.cells[:, 0]] = np.arange(len(self.cells))
        return ids

    def state_at(self, x: int, y: int) -> int:
        """The state id of a cell; walls and cells outside raise a LayoutError."""
        inside = 0 <= x < self.width and 0 <= y < self.height
        state = int(self.state_ids[y, x]) if inside else -1
        if state < 0:
            raise LayoutError(f"{self.name}: ({x}, {y}) is {'a wall' if inside else 'outside the layout'}")
        return state

    @cached_property
    def characters(self) -> NDArray[np.str_]:
        """(states,): the character of every state."""
        return self.grid[self.cells[:, 1], self.cells[:, 0]]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.characters == "S")

    @cached_property
    def goals(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.characters == "G")

    @cached_property
    def doors(self) -> NDArray[np.int64]:
        return np.flatnonzero(np.isin(self.characters, list(DOORS)))

    @cached_property
    def headings(self) -> NDArray[np.int64]:
        """(states,): the action along which the door of a state points, -1 without a door."""
        return np.array([DOORS.find(character) for character in self.characters])

    @cached_property
    def observations(self) -> NDArray[np.float32]:
        """(states, 18): (x, y) scaled to [-1, 1], then the headings of all doors as (action + 1) / 4, zero-padded."""
        table = np.zeros((len(self.cells), OBSERVATION_DIM), np.float32)
        table[:, :2] = 2 * self.cells / (self.width - 1, self.height - 1) - 1
        table[:, 2 : 2 + len(self.doors)] = (self.headings[self.doors] + 1) / len(MOVES)
        return table

    @cached_property
    def transitions(self) -> NDArray[np.int64]:
        """(states, actions): the next state.

        A move is blocked by a wall, and by a door in its origin or target cell that points against it.
        """
        states = np.arange(len(self.cells))
        table = np.empty((len(states), len(MOVES)), np.int64)
        for action, move in enumerate(MOVES):
            x, y = (self.cells + move).T
            target = self.state_ids[y, x]
            against = self.headings == opposite(action)
            blocked = (target < 0) | against | against[target]
            table[:, action] = np.where(blocked, states, target)
        return table

    @cached_property
    def world(self) -> World:
        return World(
            self.name, self.observations, self.transitions, self.starts, self.goals, cells=self.cells, layout=self
        )


def builtin_layouts() -> list[str]:
    folder = resources.files("qrl.envs").joinpath("layouts")
    return sorted(entry.name.removesuffix(".txt") for entry in folder.iterdir())


def load_layout(source: "str | Path | Layout") -> Layout:
    """Load a layout by built-in name, by the path of a text file, or from its text (recognized by line breaks)."""
    if isinstance(source, Layout):
        return source
    if isinstance(source, str) and "\n" in source:
        return Layout(source)
    if str(source) in builtin_layouts():
        text = resources.files("qrl.envs").joinpath("layouts", f"{source}.txt").read_text("utf-8")
        return Layout(text, str(source))
    try:
        return Layout(read_text(source), str(source))
    except FileError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise LayoutError(str(error)) from error
    if isinstance(source, Path) or "/" in source or Path(source).suffix:
        known = ", ".join(builtin_layouts())
        raise LayoutError(f"layout file {clip(source)} does not exist; built-in layouts: {known}")
    raise LayoutError(f"{unknown_name('layout', source, builtin_layouts())}; or give the path of a text file")
