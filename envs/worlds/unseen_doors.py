"""A layout whose one-way doors point either way: some configurations to learn from, others held out."""

from functools import lru_cache
from typing import Literal

import numpy as np
from pydantic import Field

from qrl.envs.errors import WorldError
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.layout import DOORS, Layout, opposite
from qrl.envs.world import World
from qrl.envs.worlds.layout import WrittenSettings
from qrl.envs.worlds.registry import register_world

_MAX_DOORS = 12  # all 2^doors configurations are tried
_MAX_STATES = 2**21  # of all configurations together: two seconds, and 1 GB if all are chosen


class UnseenDoorsSettings(WrittenSettings):
    split: Literal["train", "test"] = Field("train", description="configurations to learn from, or held-out ones")
    configurations: int = Field(10, ge=1, description="number of configurations to learn from; fewer are some of more")
    held_out: int = Field(40, ge=1, description="number of held-out configurations")
    seed: int = Field(0, ge=0, lt=2**63, description="seed that splits the configurations")


@register_world("unseen-doors", UnseenDoorsSettings)
def unseen_doors(settings: UnseenDoorsSettings) -> World:
    """A layout whose doors point either way, which observations show; one configuration holds for an episode.

    Of all configurations, only those are used in which every start reaches every goal. The seed splits them into those
    to learn from and those held out, which never overlap: collect the data of a run with split=train, and evaluate it
    on a dataset of split=test.
    """
    layout = settings.read_layout()
    solvable = _solvable(layout)
    if settings.configurations + settings.held_out > len(solvable):
        raise WorldError(
            f"world unseen-doors: {settings.configurations} configurations and {settings.held_out} held out are more "
            f"than the {len(solvable)} of {layout.name} in which every start reaches every goal"
        )
    order = np.random.default_rng(settings.seed).permutation(len(solvable))
    held_out, train = order[: settings.held_out], order[settings.held_out :][: settings.configurations]
    chosen = train if settings.split == "train" else held_out
    worlds = [_configured(layout, solvable[index]).world for index in chosen]
    first = len(layout.cells) * np.arange(len(worlds))[:, None]
    return World(
        f"unseen-doors-{settings.split}",
        np.concatenate([world.observations for world in worlds]),
        np.concatenate([world.transitions + offset for world, offset in zip(worlds, first, strict=True)]),
        starts=(layout.starts + first).ravel(),
        goals=(layout.goals + first).ravel(),
        cells=np.concatenate([world.cells for world in worlds]),
    )


@lru_cache(maxsize=2)
def _solvable(layout: Layout) -> list[int]:
    """The numbers of all configurations in which every start reaches every goal."""
    doors, states = len(layout.doors), len(layout.cells)
    if not 1 <= doors <= _MAX_DOORS:
        raise WorldError(f"world unseen-doors: {layout.name} has {doors} doors; choose a layout with 1 to {_MAX_DOORS}")
    if 2**doors * states > _MAX_STATES:
        raise WorldError(
            f"world unseen-doors: the {2**doors:,} configurations of {layout.name} have {2**doors * states:,} states, "
            f"more than {_MAX_STATES:,}; choose a layout with fewer doors or cells"
        )
    return [number for number in range(2**doors) if GroundTruth(_configured(layout, number)).all_reachable]


def _configured(layout: Layout, number: int) -> Layout:
    """The layout with those of its doors turned round that are set in the binary digits of a number."""
    characters = list(layout.text)
    places = [index for index, character in enumerate(characters) if character in DOORS]
    for bit, place in enumerate(places):
        if number >> bit & 1:
            characters[place] = DOORS[opposite(DOORS.index(characters[place]))]
    return Layout("".join(characters), layout.name)
