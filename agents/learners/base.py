"""What all learners share: a step of Adam on a loss of discounted distances, and everything a step depends on."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.errors import TrainingError
from qrl.agents.learners.sampler import Sampler
from qrl.agents.learners.settings import LearnerSettings
from qrl.agents.tensors import with_prefix
from qrl.q_models.base import QModel
from qrl.readouts import D_MIN


def discounted(
    model: QModel, observations: Tensor, states: Tensor, actions: Tensor | None, goals: Tensor, goal_actions: Tensor
) -> Tensor:
    """D of pairs of states and goals, given as rows of `observations`; each distinct row is encoded once."""
    ids, inverse, counts = torch.unique(torch.cat([states, goals]), return_inverse=True, return_counts=True)
    rows = model.encode(observations.index_select(0, ids), counts)
    return model.discounted_at(rows, inverse[: len(states)], actions, inverse[len(states) :], goal_actions)


def triangle_regularizer(xy: Tensor, yz: Tensor, xz: Tensor) -> Tensor:
    """Mean of ((D(x, y) D(y, z) - D(x, z))^+)^2: 0 for every quasimetric."""
    return F.relu(xy * yz - xz).square().mean()


class Loss(NamedTuple):
    """The loss of a batch, its named terms, the predicted D and its targets y."""

    value: Tensor
    terms: dict[str, Tensor]
    predicted: Tensor
    targets: Tensor


class LearnerState(NamedTuple):
    """Everything that the next steps depend on: tensors, and the sampler's state as plain JSON values."""

    step: int
    tensors: dict[str, Tensor]
    sampler: dict[str, Any]


class Learner(ABC):
    """A model in training: the model, its optimizer, its sampler and the number of steps done.

    A subclass draws a batch from its `sampler` and computes its `loss`.
    """

    MODULES: ClassVar[tuple[str, ...]] = ("model",)  # attributes that are saved as modules

    def __init__(
        self, model: QModel, observations: Tensor, settings: LearnerSettings, sampler: Sampler, num_samples: int
    ) -> None:
        self.model = model.train()
        self.observations = observations
        self.sampler = sampler
        self.num_samples = num_samples  # in the data: an epoch
        self.num_steps = settings.num_steps(num_samples)
        self.steps_done = 0
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)
        self._schedule = settings.learning_rate

    @property
    @abstractmethod
    def loss_terms(self) -> tuple[str, ...]:
        """The names of the terms that `loss` reports."""

    @abstractmethod
    def loss(self) -> Loss:
        """The loss of a new batch."""

    def after_step(self) -> None:  # noqa: B027 - optional
        """What follows the optimizer's step."""

    def step(self, log: bool = True) -> dict[str, float]:
        """One training step; returns named scalars, or nothing unless `log`."""
        loss = self.loss()
        if not torch.isfinite(loss.value):
            raise TrainingError(
                f"the loss is {loss.value.item()} at step {self.steps_done + 1}; try a lower learner.lr"
            )
        lr = self._schedule(self.steps_done, self.num_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.zero_grad(set_to_none=True)
        loss.value.backward()
        scalars = self._scalars(loss, lr) if log else {}
        self.optimizer.step()
        self.model.project_()
        self.after_step()
        self.steps_done += 1
        return scalars

    @property
    def scalars(self) -> list[str]:
        """The names of what `step` returns."""
        terms = (f"loss_{name}" for name in self.loss_terms)
        return ["loss", *terms, "predicted_discount", "predicted_distance", "target_discount", "gradient_norm", "lr"]

    def _scalars(self, loss: Loss, lr: float) -> dict[str, float]:
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        norm = torch.stack(torch._foreach_norm(gradients)).norm()
        distance = loss.predicted.clamp(D_MIN, 1).log() / math.log(self.model.spec.discount)
        return {
            "loss": loss.value.item(),
            **{f"loss_{name}": value.item() for name, value in loss.terms.items()},
            "predicted_discount": loss.predicted.mean().item(),
            "predicted_distance": distance.mean().item(),
            "target_discount": loss.targets.mean().item(),
            "gradient_norm": norm.item(),
            "lr": lr,
        }

    # State, from which training resumes bit-exactly

    def state_dict(self) -> LearnerState:
        tensors = {
            f"{module}.{key}": value
            for module in self.MODULES
            for key, value in getattr(self, module).state_dict().items()
        }
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{key}.{name}"] = value
        return LearnerState(self.steps_done, tensors, self.sampler.state_dict())

    def load_state_dict(self, state: LearnerState) -> None:
        for module in self.MODULES:
            getattr(self, module).load_state_dict(with_prefix(state.tensors, module))
        moments = with_prefix(state.tensors, "optimizer")
        for name, parameter in self.model.named_parameters():
            keys = [key for key in ("step", "exp_avg", "exp_avg_sq") if f"{key}.{name}" in moments]
            if keys:
                own = {key: moments[f"{key}.{name}"].to(parameter.device, copy=True) for key in keys}
                if any(own[key].shape != parameter.shape for key in keys if key != "step"):
                    raise ValueError(f"the optimizer's state of {name} has another shape")
                self.optimizer.state[parameter] = own
        self.sampler.load_state_dict(state.sampler)
        self.steps_done = state.step

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Start from the weights of another model of the same shape."""
        for module in self.MODULES:
            getattr(self, module).load_state_dict(weights)
