"""The contract of a learner, and what all of them share: a step of Adam, the schedule, and exact resume."""

import copy
import json
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from qrl.agents.errors import LearnerError, TrainingError
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.sampler import Sampler
from qrl.agents.learners.settings import GoalSettings, LearnerSettings, Learns
from qrl.agents.tensors import with_prefix
from qrl.q_models.base import QModel
from qrl.readouts import D_MIN


class Loss(NamedTuple):
    """What a step minimizes, and what it reports: tensors by name, of which the means are logged."""

    value: Tensor
    reports: dict[str, Tensor]


class LearnerState(NamedTuple):
    """Everything that the next steps depend on: tensors, and the sampler's state as plain JSON values."""

    step: int
    tensors: dict[str, Tensor]
    sampler: dict[str, Any]


class Learner(ABC):
    """A model in training, with everything that its steps depend on.

    A subclass computes its `loss` on what it draws from its `sampler`. What it optimizes beside the model is an
    attribute of its own: a network, parameters or a target as an `nn.Module`, and an optimizer for them. The base class
    finds those by their types: it steps every optimizer on the gradient of the loss, and saves and restores modules,
    optimizers and sampler.
    """

    GOAL_KINDS: ClassVar[tuple[str, ...]] = ("state-action", "state")  # of the models that it can train
    NEEDS_QUASIMETRIC: ClassVar[bool] = False

    settings: Any  # a subclass names its own type
    sampler: Any

    def __init__(self, model: QModel, observations: Tensor, dataset: Any, settings: LearnerSettings, seed: int) -> None:
        self.name = settings.name
        self.learns: Learns = settings.LEARNS
        self._check_model(model)
        self.model = model.train()
        self.observations = observations  # of all states, scaled
        self.num_samples: int = dataset.num_samples  # an epoch
        self.num_steps = settings.num_steps(self.num_samples)
        self.steps_done = 0
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)
        self.settings = settings
        self.sampler = self.make_sampler(dataset, seed)

    def _check_model(self, model: QModel) -> None:
        if self.NEEDS_QUASIMETRIC and not model.guaranteed_quasimetric:
            raise LearnerError(
                f"learner {self.name}: it needs a guaranteed quasimetric, and {type(model).__name__} is none; choose "
                "another model.name (list-models shows which are)"
            )
        if model.goal_kind not in self.GOAL_KINDS:
            raise LearnerError(
                f"learner {self.name}: the goals of its model must be of the kind {' or '.join(self.GOAL_KINDS)}, and "
                f"those of {type(model).__name__} are of the kind {model.goal_kind}; choose another model.name "
                "(list-models shows them)"
            )

    def make_sampler(self, dataset: Any, seed: int) -> Sampler:
        """What its batches come from: by default transitions with goals, as the key `goals` of its settings says."""
        if not isinstance(getattr(self.settings, "goals", None), GoalSettings):
            raise LearnerError(
                f"learner {self.name}: its settings have no goals; add goals: Goals = GoalSettings(...) to them, from "
                "qrl.agents.learners.settings, or override make_sampler"
            )
        return GoalSampler(dataset, self.settings.goals, seed)

    @property
    @abstractmethod
    def reports(self) -> tuple[str, ...]:
        """The names of what `loss` reports."""

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
        lr = self.settings.learning_rate(self.steps_done, self.num_steps)
        optimizers = self._parts(torch.optim.Optimizer).values()
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.value.backward()
        scalars = self._scalars(loss, lr) if log else {}
        for optimizer in optimizers:
            optimizer.step()
        self.model.project_()
        self.after_step()
        self.steps_done += 1
        return scalars

    @property
    def scalars(self) -> list[str]:
        """The names of what `step` returns."""
        return ["loss", *self.reports, "gradient_norm", "lr"]

    def _scalars(self, loss: Loss, lr: float) -> dict[str, float]:
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        return {
            "loss": loss.value.item(),
            **{name: value.mean().item() for name, value in loss.reports.items()},
            "gradient_norm": torch.stack(torch._foreach_norm(gradients)).norm().item(),
            "lr": lr,
        }

    def notices(self) -> list[str]:
        """What a user may want to know before training."""
        return []

    # State, from which training resumes bit-exactly

    def _parts(self, kind: type) -> dict[str, Any]:
        """The attributes of a type, by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, kind)}

    def _named_parameters(self) -> list[tuple[str, nn.Parameter]]:
        """Those of all modules; the model's own by their names in the model."""
        return [
            (name if module is self.model else f"{part}.{name}", parameter)
            for part, module in self._parts(nn.Module).items()
            for name, parameter in module.named_parameters()
        ]

    def state_dict(self) -> LearnerState:
        tensors = {
            f"{part}.{key}": value
            for part, module in self._parts(nn.Module).items()
            for key, value in module.state_dict().items()
        }
        named = self._named_parameters()
        for part, optimizer in self._parts(torch.optim.Optimizer).items():
            if _optimized(optimizer) - {id(parameter) for _, parameter in named}:
                raise self._unsaved(f"{part} optimizes a parameter that is in no nn.Module of the learner")
            for name, parameter in named:
                for key, value in optimizer.state.get(parameter, {}).items():
                    if not isinstance(value, Tensor):
                        kind = type(value).__name__
                        raise self._unsaved(f"{type(optimizer).__name__} keeps {key} as {kind}, not as a tensor")
                    tensors[f"{part}.{key}.{name}"] = value
        sampler = self.sampler.state_dict()
        try:
            json.dumps(sampler)
        except (TypeError, ValueError) as error:
            raise self._unsaved(f"that of its sampler is not plain JSON values ({error})") from None
        return LearnerState(self.steps_done, tensors, sampler)

    def _unsaved(self, reason: str) -> LearnerError:
        return LearnerError(f"learner {self.name}: its state cannot be saved, so that it could not resume: {reason}")

    def load_state_dict(self, state: LearnerState) -> None:
        for part, module in self._parts(nn.Module).items():
            module.load_state_dict(with_prefix(state.tensors, part))
        parameters = dict(self._named_parameters())
        for part, optimizer in self._parts(torch.optim.Optimizer).items():
            optimized = _optimized(optimizer)
            for entry, value in with_prefix(state.tensors, part).items():
                key, _, name = entry.partition(".")
                parameter = parameters[name]
                if id(parameter) not in optimized or not _fits(value, parameter):
                    raise ValueError(f"{part}.{entry} has another shape or type than {name}")
                optimizer.state[parameter][key] = value.to(parameter.device, copy=True)
            if len({frozenset(entries) for entries in optimizer.state.values()}) > 1:
                raise ValueError(f"the state of {part} is not whole")
        self.sampler.load_state_dict(state.sampler)
        self.steps_done = state.step

    def load_networks(self, tensors: dict[str, Tensor]) -> None:
        """Take over the networks in the state of such a learner on other data, to be evaluated only.

        A module whose shapes depend on the data, such as a multiplier per transition, stays at its initialization.
        """
        for part, module in self._parts(nn.Module).items():
            weights = with_prefix(tensors, part)
            if {key: value.shape for key, value in weights.items()} == {
                key: value.shape for key, value in module.state_dict().items()
            }:
                module.load_state_dict(weights)
            module.eval()

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Start from the weights of another model of the same shape, also in the modules that copy the model."""
        for module in self._parts(nn.Module).values():
            if module is self.model or module.state_dict().keys() == weights.keys():
                module.load_state_dict(weights)


def _fits(value: Tensor, parameter: nn.Parameter) -> bool:
    """Whether it can be a part of an optimizer's state: like the parameter, or a count of its steps."""
    like = (value.shape, value.dtype) == (parameter.shape, parameter.dtype)
    return like or (value.ndim == 0 and value.is_floating_point())


def _optimized(optimizer: torch.optim.Optimizer) -> set[int]:
    """The ids of the parameters that an optimizer steps."""
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}


# What several learners compute


def encode_distinct(model: QModel, observations: Tensor, *ids: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The encoded rows of the distinct states among `ids`, and each of `ids` as indices into them."""
    distinct, inverse, counts = torch.unique(torch.cat(ids), return_inverse=True, return_counts=True)
    rows = model.encode(observations.index_select(0, distinct), counts)
    return rows, inverse.split([len(part) for part in ids])


def discounted(
    model: QModel, observations: Tensor, states: Tensor, actions: Tensor | None, goals: Tensor, goal_actions: Tensor
) -> Tensor:
    """D of pairs of states and goals, given as rows of `observations`; each distinct row is encoded once."""
    rows, (s, g) = encode_distinct(model, observations, states, goals)
    return model.discounted_at(rows, s, actions, g, goal_actions)


def triangle_regularizer(xy: Tensor, yz: Tensor, xz: Tensor) -> Tensor:
    """Mean of ((D(x, y) D(y, z) - D(x, z))^+)^2: 0 for every quasimetric."""
    return F.relu(xy * yz - xz).square().mean()


DISCOUNT_REPORTS = ("predicted_discount", "predicted_distance", "target_discount")


def discount_reports(predicted: Tensor, y: Tensor, model: QModel) -> dict[str, Tensor]:
    """`DISCOUNT_REPORTS` of the predicted D and their targets."""
    predicted = predicted.detach()
    distance = predicted.clamp(D_MIN, 1).log() / math.log(model.spec.discount)
    return dict(zip(DISCOUNT_REPORTS, (predicted, distance, y), strict=True))


def make_target(model: QModel) -> QModel:
    """A copy of the model that is not trained itself."""
    return copy.deepcopy(model).eval().requires_grad_(False)


class PolyakAverage:
    """Moves a target towards its model; buffers (running statistics) are copied."""

    def __init__(self, target: QModel, model: QModel, keep: float) -> None:
        self.keep = keep
        # Collected once: walking through all modules in every step takes too long.
        self._parameters = tuple(target.parameters()), tuple(model.parameters())
        self._buffers = tuple(zip(target.buffers(), model.buffers(), strict=True))

    @torch.no_grad()
    def update(self) -> None:
        torch._foreach_lerp_(*self._parameters, 1 - self.keep)
        for target_buffer, buffer in self._buffers:
            target_buffer.copy_(buffer)
