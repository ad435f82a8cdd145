"""Modified MBOLD: offline Q-learning of discounted distances D = gamma**d to relabelled goals.

The targets, for a deterministic world with unit costs and goals (g, a_g) as pairs:

    y = 1                               if (s, a) = (g, a_g)
    y = gamma                           if s' = g otherwise
    y = gamma max_b D_target((s', b), (g, a_g))   otherwise

and with goals as states: y = 1 if s' = g, else gamma max_b D_target((s', b), g). Whether a goal is reached is decided
by the identity of states; the end of a trajectory by its step cap is no end.
"""

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from agents.goal_sampler import Batch, GoalSampler
from agents.settings import LearnerSettings
from qrl.common.errors import TrainingError
from qrl.q_models.base import QModel, pick
from qrl.readouts import D_MIN


@dataclass(frozen=True)
class Triplets:
    """Three state-action pairs x, y, z for the triangle regulariser; fields are (3, triplets)."""

    states: Tensor
    actions: Tensor


class Encoded:
    """The encodings of some states, each distinct one computed once."""

    def __init__(self, model: QModel, observations: Tensor, states: Tensor, count: bool = False) -> None:
        self.model = model
        self.ids, counts = torch.unique(states, return_counts=True)
        self.rows = model.encode(observations.index_select(0, self.ids), counts if count else None)

    def discounted(self, states: Tensor, actions: Tensor | None, goals: Tensor, goal_actions: Tensor) -> Tensor:
        places, targets = torch.searchsorted(self.ids, states), torch.searchsorted(self.ids, goals)
        return self.model.discounted_at(self.rows, places, actions, targets, goal_actions)


@torch.no_grad()
def mbold_targets(target: QModel, observations: Tensor, batch: Batch) -> Tensor:
    """(batch,): the values y above, within [0, 1]."""
    encoded = Encoded(target, observations, torch.cat([batch.next_states, batch.goals]))
    gamma = target.spec.discount
    ahead = encoded.discounted(batch.next_states, None, batch.goals, batch.goal_actions)
    y = gamma * ahead.amax(-1)
    arrived = batch.next_states == batch.goals
    if target.goal_kind == "state":
        return torch.where(arrived, 1.0, y).clamp(0, 1)
    there = (batch.states == batch.goals) & (batch.actions == batch.goal_actions)
    return torch.where(there, 1.0, torch.where(arrived, gamma, y)).clamp(0, 1)


def mbold_loss(
    model: QModel, y: Tensor, observations: Tensor, batch: Batch, settings: LearnerSettings, triplets: Triplets | None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a step and its parts; a pure function but for the model's running statistics."""
    states, goals = [batch.states], [batch.goals]
    actions, goal_actions = [batch.actions], [batch.goal_actions]
    if triplets is not None:
        # x -> y, y -> z and x -> z, asked together with the batch: one encoding and one update of statistics.
        for source, target in ((0, 1), (1, 2), (0, 2)):
            states.append(triplets.states[source])
            actions.append(triplets.actions[source])
            goals.append(triplets.states[target])
            goal_actions.append(triplets.actions[target])
    s, a, g, b = (torch.cat(parts) for parts in (states, actions, goals, goal_actions))
    encoded = Encoded(model, observations, torch.cat([s, g]), count=True)
    if settings.conservative == 0 and triplets is None:
        chosen = encoded.discounted(s, a, g, b)
        return _td_loss(chosen, y)
    every = encoded.discounted(s, None, g, b)
    chosen = pick(every, a, -1)
    size = len(y)
    loss, parts = _td_loss(chosen[:size], y)
    if settings.conservative > 0:
        parts["conservative"] = (every[:size].logsumexp(-1) - chosen[:size]).mean()
        loss = loss + settings.conservative * parts["conservative"]
    if triplets is not None:
        xy, yz, xz = chosen[size:].unflatten(0, (3, -1))
        if model.goal_kind == "state":
            # From g1 on, the best action, and one more step: d((s, a), g) does not count the step that a takes.
            yz = model.spec.discount * every[size:].unflatten(0, (3, -1))[1].amax(-1)
        parts["triangle"] = triangle_regulariser(xy, yz, xz)
        loss = loss + settings.triangle * parts["triangle"]
    return loss, parts


def _td_loss(predicted: Tensor, y: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    loss = F.mse_loss(predicted, y)
    return loss, {"td": loss, "predicted": predicted.detach()}


def triangle_regulariser(xy: Tensor, yz: Tensor, xz: Tensor) -> Tensor:
    """Mean of ((D(x, y) D(y, z) - D(x, z))^+)^2: 0 for every quasimetric."""
    return F.relu(xy * yz - xz).square().mean()


class Learner:
    """A model in training: the model, its target, the optimiser and how far they are."""

    def __init__(self, model: QModel, observations: Tensor, settings: LearnerSettings, num_steps: int) -> None:
        self.model = model.train()
        self.target = copy.deepcopy(model).eval().requires_grad_(False)
        self.observations = observations
        self.settings = settings
        self.num_steps = num_steps
        self.step = 0
        self.optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)

    def update(self, sampler: GoalSampler, with_metrics: bool) -> dict[str, float]:
        """One step; `with_metrics` says whether the caller wants to see how it went."""
        settings = self.settings
        batch = self._to_device(sampler.sample(settings.batch_size))
        triplets = None
        if settings.triangle > 0:
            states, actions = sampler.sample_pairs(3 * settings.triangle_triplets)
            device = self.observations.device
            triplets = Triplets(states.view(3, -1).to(device), actions.view(3, -1).to(device))
        y = mbold_targets(self.target, self.observations, batch)
        loss, parts = mbold_loss(self.model, y, self.observations, batch, settings, triplets)
        if not torch.isfinite(loss):
            raise TrainingError(f"the loss is {loss.item()} at step {self.step + 1}; try a lower learner.lr")
        lr = settings.learning_rate(self.step, self.num_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        metrics = self._metrics(loss, parts, y, lr) if with_metrics else {}
        self.optimizer.step()
        self.model.project_()
        self._follow()
        self.step += 1
        return metrics

    def _to_device(self, batch: Batch) -> Batch:
        return Batch(*(tensor.to(self.observations.device) for tensor in vars(batch).values()))

    @torch.no_grad()
    def _follow(self) -> None:
        """Polyak averaging of the target; buffers (running statistics) are copied."""
        own, other = tuple(self.target.parameters()), tuple(self.model.parameters())
        torch._foreach_lerp_(own, other, 1 - self.settings.polyak)
        for mine, theirs in zip(self.target.buffers(), self.model.buffers(), strict=True):
            mine.copy_(theirs)

    def _metrics(self, loss: Tensor, parts: dict[str, Tensor], y: Tensor, lr: float) -> dict[str, float]:
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        norm = torch.stack(torch._foreach_norm(gradients)).norm()
        predicted = parts.pop("predicted")
        distance = predicted.clamp(D_MIN, 1).log() / math.log(self.model.spec.discount)
        return {
            "loss": loss.item(),
            **{f"loss_{name}": value.item() for name, value in parts.items()},
            "predicted_discount": predicted.mean().item(),
            "predicted_distance": distance.mean().item(),
            "target_discount": y.mean().item(),
            "gradient_norm": norm.item(),
            "lr": lr,
        }

    # All that a step depends on, beside the sampler's state.

    def tensors(self) -> dict[str, Tensor]:
        made = {f"model.{key}": value for key, value in self.model.state_dict().items()}
        made |= {f"target.{key}": value for key, value in self.target.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                made[f"optimizer.{key}.{name}"] = value
        return made

    def load_tensors(self, tensors: dict[str, Tensor], step: int) -> None:
        for part in ("model", "target"):
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
