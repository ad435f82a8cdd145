"""What the explorer shows of a world. The only module of the explorer that knows layouts and their ground truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.planning.planner import Ids, Steps
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.layout import MOVES

_ACTIONS = ("up", "right", "down", "left")  # of a layout


@dataclass(frozen=True)
class ExplorerWorld:
    """The states of a dataset. Without a layout nothing else is known: no cells, transitions or exact distances."""

    name: str
    observations: NDArray[np.float32]  # (states, dimension)
    actions: tuple[str, ...]
    task: tuple[int, int]  # the start and the goal that are shown first
    truth: GroundTruth | None

    @classmethod
    def of(cls, dataset: Dataset) -> "ExplorerWorld":
        evaluator = Evaluator(dataset)
        truth, count = evaluator.truth, len(dataset.observations)
        if truth is None:
            actions = tuple(f"action {action}" for action in range(dataset.header.spaces.num_actions))
            return cls("data without a layout", dataset.observations, actions, (0, count - 1), None)
        return cls(truth.layout.name, dataset.observations, _ACTIONS, evaluator.task(), truth)

    def same_as(self, other: "ExplorerWorld") -> bool:
        if self.truth is not None and other.truth is not None:
            return self.truth.layout == other.truth.layout
        return self.truth is other.truth and np.array_equal(self.observations, other.observations)

    @property
    def goals(self) -> Ids:
        """The states that tasks end in; all, if there are no tasks."""
        return np.arange(len(self.observations)) if self.truth is None else self.truth.layout.goals

    @property
    def transitions(self) -> Ids | None:
        """(states, actions): the next state."""
        return None if self.truth is None else self.truth.transitions

    def exact_steps(self, goals: Ids) -> Steps | None:
        """(states, goals, actions): exact steps that remain to each of the `goals` after each action."""
        if self.truth is None:
            return None
        return self.truth.distances[:, goals][self.truth.transitions].transpose(0, 2, 1)

    def drawing(self) -> dict[str, Any] | None:
        """The map: cells (x, y) of the states, the doors as (state, action that passes), and a (dx, dy) per action."""
        if self.truth is None:
            return None
        layout = self.truth.layout
        return {
            "width": layout.width,
            "height": layout.height,
            "cells": layout.cells.tolist(),
            "doors": [[int(door), int(layout.headings[door])] for door in layout.doors],
            "moves": MOVES.tolist(),
        }
