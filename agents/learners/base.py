"""What all learners share: a step of Adam on a loss of discounted distances, and all that a step depends on."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.errors import TrainingError
from qrl.agents.learners.sampler import Sampler
from qrl.agents.learners.settings import FitSettings
from qrl.q_models.base import QModel
from qrl.readouts import D_MIN


def discounted(
    model: QModel, observations: Tensor, states: Tensor, actions: Tensor | None, goals: Tensor, goal_actions: Tensor
) -> Tensor:
    """D of pairs of states and goals, given by their rows in `observations`: each distinct one is encoded once."""
    ids, places, counts = torch.unique(torch.cat([states, goals]), return_inverse=True, return_counts=True)
    rows = model.encode(observations.index_select(0, ids), counts)
    return model.discounted_at(rows, places[: len(states)], actions, places[len(states) :], goal_actions)


def triangle_regulariser(xy: Tensor, yz: Tensor, xz: Tensor) -> Tensor:
    """Mean of ((D(x, y) D(y, z) - D(x, z))^+)^2: 0 for every quasimetric."""
    return F.relu(xy * yz - xz).square().mean()


class Loss(NamedTuple):
    """The loss of a batch; its named parts, with "predicted" D among them; and the targets y of D."""

    value: Tensor
    parts: dict[str, Tensor]
    targets: Tensor


SamplerT = TypeVar("SamplerT", bound=Sampler)
SettingsT = TypeVar("SettingsT", bound=FitSettings)


class Learner(ABC, Generic[SamplerT, SettingsT]):
    """A model in training: the model, its optimiser and how far they are."""

    PARTS: ClassVar[tuple[str, ...]] = ("model",)  # attributes that are modules

    def __init__(self, model: QModel, observations: Tensor, settings: SettingsT, num_steps: int) -> None:
        self.model = model.train()
        self.observations = observations
        self.settings = settings
        self.num_steps = num_steps
        self.step = 0
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)

    @abstractmethod
    def loss(self, sampler: SamplerT) -> Loss:
        """The loss of a new batch."""

    def after_step(self) -> None:
        """What follows the optimiser's step."""

    def update(self, sampler: SamplerT, with_metrics: bool) -> dict[str, float]:
        """One step; `with_metrics` says whether the caller wants to see how it went."""
        loss = self.loss(sampler)
        if not torch.isfinite(loss.value):
            raise TrainingError(f"the loss is {loss.value.item()} at step {self.step + 1}; try a lower learner.lr")
        lr = self.settings.learning_rate(self.step, self.num_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.zero_grad(set_to_none=True)
        loss.value.backward()
        metrics = self._metrics(loss, lr) if with_metrics else {}
        self.optimizer.step()
        self.model.project_()
        self.after_step()
        self.step += 1
        return metrics

    def _metrics(self, loss: Loss, lr: float) -> dict[str, float]:
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        norm = torch.stack(torch._foreach_norm(gradients)).norm()
        predicted = loss.parts.pop("predicted")
        distance = predicted.clamp(D_MIN, 1).log() / math.log(self.model.spec.discount)
        return {
            "loss": loss.value.item(),
            **{f"loss_{name}": value.item() for name, value in loss.parts.items()},
            "predicted_discount": predicted.mean().item(),
            "predicted_distance": distance.mean().item(),
            "target_discount": loss.targets.mean().item(),
            "gradient_norm": norm.item(),
            "lr": lr,
        }

    # All that a step depends on, beside the sampler's state.

    def tensors(self) -> dict[str, Tensor]:
        made = {
            f"{part}.{key}": value for part in self.PARTS for key, value in getattr(self, part).state_dict().items()
        }
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                made[f"optimizer.{key}.{name}"] = value
        return made

    def load_tensors(self, tensors: dict[str, Tensor], step: int) -> None:
        for part in self.PARTS:
            getattr(self, part).load_state_dict(part_of(tensors, part))
        moments = part_of(tensors, "optimizer")
        for name, parameter in self.model.named_parameters():
            keys = [key for key in ("step", "exp_avg", "exp_avg_sq") if f"{key}.{name}" in moments]
            if keys:
                state = {key: moments[f"{key}.{name}"].to(parameter.device, copy=True) for key in keys}
                if any(state[key].shape != parameter.shape for key in keys if key != "step"):
                    raise ValueError(f"the optimiser's state of {name} has another shape")
                self.optimizer.state[parameter] = state
        self.step = step


def part_of(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix`, without it."""
    return {key.removeprefix(f"{prefix}."): value for key, value in tensors.items() if key.startswith(f"{prefix}.")}
