"""Modified MBOLD: offline Q-learning of discounted distances D = gamma**d to relabelled goals.

The targets, for a deterministic world with unit costs and goals (g, a_g) as pairs:

    y = 1                               if (s, a) = (g, a_g)
    y = gamma                           if s' = g otherwise
    y = gamma max_b D_target((s', b), (g, a_g))   otherwise

and with goals as states: y = 1 if s' = g, else gamma max_b D_target((s', b), g). Whether a goal is reached is decided
by the identity of states; the end of a trajectory by its step cap is no end.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.learners.base import Learner, Loss, discounted, triangle_regulariser
from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.settings import MboldSettings
from qrl.q_models.base import QModel, pick


@dataclass(frozen=True)
class Triplets:
    """Three state-action pairs x, y, z for the triangle regulariser; fields are (3, triplets)."""

    states: Tensor
    actions: Tensor


@torch.no_grad()
def mbold_targets(target: QModel, observations: Tensor, batch: Batch) -> Tensor:
    """(batch,): the values y above, within [0, 1]."""
    gamma = target.spec.discount
    ahead = discounted(target, observations, batch.next_states, None, batch.goals, batch.goal_actions)
    y = gamma * ahead.amax(-1)
    arrived = batch.next_states == batch.goals
    if target.goal_kind == "state":
        return torch.where(arrived, 1.0, y).clamp(0, 1)
    there = (batch.states == batch.goals) & (batch.actions == batch.goal_actions)
    return torch.where(there, 1.0, torch.where(arrived, gamma, y)).clamp(0, 1)


def mbold_loss(
    model: QModel, y: Tensor, observations: Tensor, batch: Batch, settings: MboldSettings, triplets: Triplets | None
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
    if settings.conservative == 0 and triplets is None:
        return _td_loss(discounted(model, observations, s, a, g, b), y)
    every = discounted(model, observations, s, None, g, b)
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


class MboldLearner(Learner[GoalSampler, MboldSettings]):
    """A model that learns beside its target."""

    PARTS = ("model", "target")

    def __init__(self, model: QModel, observations: Tensor, settings: MboldSettings, num_steps: int) -> None:
        super().__init__(model, observations, settings, num_steps)
        self.target = copy.deepcopy(model).eval().requires_grad_(False)
        # Found once and not in every step, because that walks through all modules.
        self._parameters = tuple(self.target.parameters()), tuple(self.model.parameters())
        self._buffers = tuple(zip(self.target.buffers(), self.model.buffers(), strict=True))

    def loss(self, sampler: GoalSampler) -> Loss:
        settings, device = self.settings, self.observations.device
        sampled = sampler.sample(settings.batch_size)
        batch = Batch(*(tensor.to(device) for tensor in vars(sampled).values()))
        triplets = None
        if settings.triangle > 0:
            states, actions = sampler.sample_pairs(3 * settings.triangle_triplets)
            triplets = Triplets(states.view(3, -1).to(device), actions.view(3, -1).to(device))
        y = mbold_targets(self.target, self.observations, batch)
        loss, parts = mbold_loss(self.model, y, self.observations, batch, settings, triplets)
        return Loss(loss, parts, y)

    @torch.no_grad()
    def after_step(self) -> None:
        """Polyak averaging of the target; buffers (running statistics) are copied."""
        torch._foreach_lerp_(*self._parameters, 1 - self.settings.polyak)
        for mine, theirs in self._buffers:
            mine.copy_(theirs)
