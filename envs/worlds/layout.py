"""A layout as a registered world, with slip if wanted."""

from dataclasses import replace
from typing import Self

from pydantic import Field

from qrl.envs.errors import LayoutError
from qrl.envs.layout import Layout, builtin_layouts, load_layout
from qrl.envs.world import World
from qrl.envs.worlds.registry import WorldSettings, register_world
from qrl.envs.worlds.slip import DISCOUNT, SLIP, with_slip


class WrittenSettings(WorldSettings):
    """Of worlds that are made from a layout."""

    layout: str = Field("six-rooms", description="name of a built-in layout, path of a text file, or the text itself")

    def resolved(self) -> Self:
        """With the text of the layout, unless it is built in."""
        if self.layout in builtin_layouts():
            return self
        return self.model_copy(update={"layout": load_layout(self.layout).text})

    def read_layout(self) -> Layout:
        """The layout of resolved settings; no file is read."""
        if "\n" not in self.layout and self.layout not in builtin_layouts():
            raise LayoutError(f"world {self.name}: {self.layout!r} is neither the text nor the name of a layout")
        return load_layout(self.layout)


class LayoutSettings(WrittenSettings):
    slip: float = SLIP
    discount: float = DISCOUNT


@register_world("layout", LayoutSettings)
def layout_world(settings: LayoutSettings) -> World:
    """Rooms, corridors and one-way doors written as text."""
    return with_slip(replace(settings.read_layout().world, discount=settings.discount), settings.slip)
