"""What the explorer shows of a world. The only module of the explorer that knows worlds and their ground truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.single_task import task_states
from qrl.agents.planning.planner import Ids, Steps
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.layout import MOVES
from qrl.envs.world import World

_MOVES = ("up", "right", "down", "left")  # of a layout


@dataclass(frozen=True)
class ExplorerWorld:
    """The states of a dataset. Without a world, nothing else is known: no cells, transitions or exact distances."""

    name: str
    observations: NDArray[np.float32]  # (states, dimension)
    actions: tuple[str, ...]
    task: tuple[int, int]  # the start and the goal that are shown first
    truth: GroundTruth | None

    @classmethod
    def of(cls, dataset: Dataset) -> "ExplorerWorld":
        evaluator = Evaluator(dataset)
        truth, observations = evaluator.truth, evaluator.observations
        actions = tuple(f"action {action}" for action in range(dataset.header.spaces.num_actions))
        if truth is None:
            return cls("data without a world", observations, actions, (0, len(observations) - 1), None)
        world = truth.world
        named = actions if world.layout is None else _MOVES
        return cls(world.name, observations, named, task_states(evaluator), truth)

    def same_as(self, other: "ExplorerWorld") -> bool:
        if self.truth is not None and other.truth is not None:
            return self.truth.world == other.truth.world
        return self.truth is other.truth and np.array_equal(self.observations, other.observations)

    @property
    def goals(self) -> Ids:
        """The states that tasks end in; all, if there are no tasks."""
        goals: Ids = np.arange(len(self.observations)) if self.truth is None else self.truth.world.goals
        return goals

    @property
    def transitions(self) -> Ids | None:
        """(states, actions): the next state; None where nothing is known, or chance decides."""
        return None if self.truth is None or not self.truth.world.deterministic else self.truth.transitions

    def exact_steps(self, goals: Ids) -> Steps | None:
        """(states, goals, actions): exact steps that remain to each of the `goals` after each action."""
        if self.truth is None:
            return None
        return self.truth.after_action(self.truth.distances_to(goals)).transpose(0, 2, 1)

    @property
    def map_missing(self) -> str | None:
        """Why there is no map with walks, if there is none."""
        if self.truth is None:
            return "the dataset has no world: there is no map, no exact distance and no walk, only tables"
        world = self.truth.world
        if world.cells is None or len(np.unique(world.cells, axis=0)) < world.num_states:
            return "the states of this world have no cells of their own: there is no map, only tables"
        if not world.deterministic:
            return "chance decides in this world, so that no single walk can be shown: there is no map, only tables"
        return None

    def drawing(self) -> dict[str, Any] | None:
        """The map: cells (x, y) of the states, the doors as (state, action that passes), and a (dx, dy) per action.

        Without moves, an action points to the cell that it leads to.
        """
        if self.truth is None or self.map_missing is not None:
            return None
        return {**_extent(self.truth.world), "cells": self.truth.world.cells.tolist()}


def _extent(world: World) -> dict[str, Any]:
    layout = world.layout
    if layout is None:
        width, height = (world.cells.max(0) + 1).tolist()
        return {"width": width, "height": height, "doors": [], "moves": None}
    doors = [[int(door), int(layout.headings[door])] for door in layout.doors]
    return {"width": layout.width, "height": layout.height, "doors": doors, "moves": MOVES.tolist()}
