"""A custom world: circles one inside the other, on which a step leads clockwise and a ladder only inwards."""

import numpy as np
from pydantic import Field

from qrl import World, register_world
from qrl.envs.worlds.registry import WorldSettings


class SpiralSettings(WorldSettings):
    circles: int = Field(4, ge=2, le=100, description="number of circles, one inside the other")
    places: int = Field(12, ge=3, le=1000, description="places on each circle")


@register_world("spiral", SpiralSettings)
def spiral(settings: SpiralSettings) -> World:
    """Circles on which a step leads clockwise; ladders at place 0 lead inwards, and from the innermost back outside."""
    circles, places = settings.circles, settings.places
    circle, place = np.divmod(np.arange(circles * places), places)
    step = circle * places + (place + 1) % places
    climb = np.where(place == 0, (circle + 1) % circles * places, np.arange(circles * places))
    radius, angle = 1 - circle / circles, 2 * np.pi * place / places
    return World(
        f"spiral-{circles}x{places}",
        observations=np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1),
        transitions=np.stack([step, climb], 1),
        starts=np.flatnonzero(circle == 0),
        goals=np.flatnonzero(circle == circles - 1),
        cells=np.stack([place, circle], 1),
    )
