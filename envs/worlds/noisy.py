"""A layout whose observations are noisy: none is ever seen twice."""

from dataclasses import replace

from pydantic import Field

from qrl.envs.world import World
from qrl.envs.worlds.layout import LayoutSettings
from qrl.envs.worlds.registry import register_world
from qrl.envs.worlds.slip import with_slip


class NoisySettings(LayoutSettings):
    noise: float = Field(0.02, ge=0, le=100, description="standard deviation of the noise of every dimension")
    distractors: int = Field(8, ge=0, le=1000, description="dimensions of standard Gaussian noise that are added")


@register_world("noisy", NoisySettings)
def noisy(settings: NoisySettings) -> World:
    """A layout with noise in its observations, drawn anew at every visit, and dimensions that mean nothing.

    Positions reach from -1 to 1; neighbouring cells of six-rooms are 0.11 apart. The graph of the data knows no state
    that it meets.
    """
    world = replace(settings.read_layout().world, discount=settings.discount)
    world = replace(world, name=f"noisy {world.name}", noise=settings.noise, distractors=settings.distractors)
    return with_slip(world, settings.slip)
