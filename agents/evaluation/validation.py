"""Validation on held-out trajectories, which needs no world: the learner's loss, and distances against hindsight."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from qrl.agents.evaluation.hindsight import Hindsight, HindsightPairs, measure_hindsight
from qrl.agents.learners.base import Learner
from qrl.agents.learners.registry import find_learner
from qrl.agents.learners.settings import LearnerSettings
from qrl.agents.scaling import Scaling
from qrl.common.seeds import derived_seed
from qrl.envs.dataset import Dataset
from qrl.q_models.base import QModel

BATCHES = 4  # over which the loss is averaged


@dataclass(frozen=True)
class Validation:
    """How a model does on held-out trajectories; hindsight: None for learners of scores, which have no distances."""

    loss: float
    hindsight: Hindsight | None
    lengths: NDArray[np.int64]  # of the trajectories


class Validator:
    """A learner on held-out trajectories: it takes over what another one has learned, and never makes a step."""

    def __init__(
        self, model: QModel, scaling: Scaling, held_out: Dataset, settings: LearnerSettings, device: str = "cpu"
    ) -> None:
        """`model`: one of the same shape, which is copied: nothing done here can change a training."""
        self._lengths = held_out.lengths
        observations = scaling(torch.tensor(held_out.observations)).to(device)
        with torch.random.fork_rng(devices=[]):
            build, seed = find_learner(settings.name).build, derived_seed(0, "validation batches")
            self._learner: Learner = build(copy.deepcopy(model), observations, held_out, settings, seed)
        self._start = self._learner.sampler.state_dict()
        self._pairs = None if settings.LEARNS == "scores" else HindsightPairs.of(held_out)

    @torch.no_grad()
    def measure(self, tensors: dict[str, Tensor]) -> Validation:
        """`tensors`: the state of the learner that is trained. Every call draws the same batches."""
        learner = self._learner
        learner.load_networks(tensors)
        learner.sampler.load_state_dict(self._start)
        with torch.random.fork_rng(devices=[]):
            loss = sum(learner.loss().value.item() for _ in range(BATCHES)) / BATCHES
        hindsight = None
        if self._pairs is not None:
            hindsight = measure_hindsight(learner.model, learner.observations, self._pairs)
        return Validation(loss, hindsight, self._lengths)
