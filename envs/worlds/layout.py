"""A layout as a registered world, with slip if wanted."""

from dataclasses import replace
from typing import Self

from pydantic import Field

from qrl.envs.errors import LayoutError
from qrl.envs.layout import builtin_layouts, load_layout
from qrl.envs.world import World
from qrl.envs.worlds.registry import WorldSettings, register_world
from qrl.envs.worlds.slip import DISCOUNT, SLIP, with_slip


class LayoutSettings(WorldSettings):
    layout: str = Field("six-rooms", description="name of a built-in layout, path of a text file, or the text itself")
    slip: float = SLIP
    discount: float = DISCOUNT

    def resolved(self) -> Self:
        """With the text of the layout, unless it is built in."""
        if self.layout in builtin_layouts():
            return self
        return self.model_copy(update={"layout": load_layout(self.layout).text})


@register_world("layout", LayoutSettings)
def layout_world(settings: LayoutSettings) -> World:
    """Rooms, corridors and one-way doors written as text."""
    if "\n" not in settings.layout and settings.layout not in builtin_layouts():
        raise LayoutError(f"world layout: {settings.layout!r} is neither the text nor the name of a layout")
    world = load_layout(settings.layout).world
    return with_slip(replace(world, discount=settings.discount), settings.slip)
