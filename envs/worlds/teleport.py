"""Rooms with teleports: a cell that sends you to one of several outlets at random, one of which may be a trap."""

from typing import Self

import numpy as np
from pydantic import Field

from qrl.common.files import read_text
from qrl.envs.errors import LayoutError
from qrl.envs.layout import Layout, normalized
from qrl.envs.world import World
from qrl.envs.worlds.registry import WorldSettings, register_world
from qrl.envs.worlds.slip import DISCOUNT, SLIP, with_slip

INLET, OUTLET = "T", "O"

# The corridor is long and safe; two of three outlets of the teleport lie in the room with the goals, one in a room
# without exit.
ROOMS = """
###################
#S.SSS#...........#
#.....#.#########.#
#..T..#.#G.G.GGG#.#
#.......#...O...#.#
#.....#.#.......#.#
#SSS.S#.#...O...#.#
#######.#G.GG.GG#.#
#..O..#.####.####.#
#.....#...........#
###################
""".strip("\n")


class TeleportSettings(WorldSettings):
    layout: str = Field("", description="text with T teleports and O outlets, or the path of a file; by default, rooms")
    slip: float = SLIP
    discount: float = DISCOUNT

    def resolved(self) -> Self:
        """With the text itself."""
        if "\n" in self.layout or not self.layout:
            return self
        return self.model_copy(update={"layout": read_text(self.layout)})


@register_world("teleport", TeleportSettings)
def teleport(settings: TeleportSettings) -> World:
    """Rooms in which a teleport (T) leads to one of the outlets (O) at random, one of them a trap."""
    text = settings.layout or ROOMS
    if "\n" not in text:
        raise LayoutError(f"world teleport: {text!r} is not the text of a layout")
    text = normalized(text)  # as the layout does, so that its cells are those of the marks
    marked = Layout(text.replace(INLET, ".").replace(OUTLET, "."), "teleport")
    characters = np.array([list(row) for row in text.split("\n")])[marked.cells[:, 1], marked.cells[:, 0]]
    inlets, outlets = (np.flatnonzero(characters == mark) for mark in (INLET, OUTLET))
    if not len(inlets) or not len(outlets):
        raise LayoutError(f"world teleport: mark at least one teleport with {INLET} and one outlet with {OUTLET}")
    # A move into a teleport ends at each outlet with the same probability; nobody is ever in one.
    steps = np.repeat(marked.transitions[..., None], len(outlets), axis=-1)
    into = np.isin(marked.transitions, inlets)
    steps[into] = outlets
    probabilities = np.full(steps.shape, 1 / len(outlets))
    world = World(
        "teleport",
        marked.observations,
        steps,
        marked.starts,
        marked.goals,
        probabilities=probabilities,
        cells=marked.cells,
        layout=marked,
        discount=settings.discount,
    )
    return with_slip(world, settings.slip)
