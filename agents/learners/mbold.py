"""Modified MBOLD: offline Q-learning of discounted distances D = gamma**d to relabelled goals.

The targets, for a deterministic world with unit costs and goals (g, a_g) that are state-action pairs:

    y = 1                                         if (s, a) = (g, a_g)
    y = gamma                                     else if s' = g
    y = gamma max_b D_target((s', b), (g, a_g))   otherwise

and for goals that are states: y = 1 if s' = g, else gamma max_b D_target((s', b), g). Whether a goal is reached is
decided by the identity of states; a trajectory cut by its step cap does not end there.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.learners.base import Learner, Loss, discounted, triangle_regularizer
from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.settings import MboldSettings
from qrl.envs.dataset import Dataset
from qrl.q_models.base import QModel, pick


@dataclass(frozen=True)
class PairTriplets:
    """Three state-action pairs x, y, z for the triangle regularizer; fields are (3, triplets)."""

    states: Tensor
    actions: Tensor


@torch.no_grad()
def mbold_targets(target: QModel, observations: Tensor, batch: Batch) -> Tensor:
    """(batch,): the targets y above, within [0, 1]."""
    gamma = target.spec.discount
    next_discounted = discounted(target, observations, batch.next_states, None, batch.goals, batch.goal_actions)
    y = gamma * next_discounted.amax(-1)
    arrived = batch.next_states == batch.goals
    if target.goal_kind == "state":
        return torch.where(arrived, 1.0, y).clamp(0, 1)
    at_goal = (batch.states == batch.goals) & (batch.actions == batch.goal_actions)
    return torch.where(at_goal, 1.0, torch.where(arrived, gamma, y)).clamp(0, 1)


def mbold_loss(
    model: QModel, y: Tensor, observations: Tensor, batch: Batch, settings: MboldSettings, triplets: PairTriplets | None
) -> Loss:
    """The loss of a step; a pure function except for the model's running statistics."""
    states, goals = [batch.states], [batch.goals]
    actions, goal_actions = [batch.actions], [batch.goal_actions]
    if triplets is not None:
        # x -> y, y -> z and x -> z join the batch: one encoding and one update of the running statistics.
        for source, target in ((0, 1), (1, 2), (0, 2)):
            states.append(triplets.states[source])
            actions.append(triplets.actions[source])
            goals.append(triplets.states[target])
            goal_actions.append(triplets.actions[target])
    s, a, g, b = (torch.cat(parts) for parts in (states, actions, goals, goal_actions))
    if settings.conservative == 0 and triplets is None:
        return _td_loss(discounted(model, observations, s, a, g, b), y)
    all_actions = discounted(model, observations, s, None, g, b)
    chosen = pick(all_actions, a, -1)
    size = len(y)
    loss = _td_loss(chosen[:size], y)
    total, terms = loss.value, loss.terms
    if settings.conservative > 0:
        terms["conservative"] = (all_actions[:size].logsumexp(-1) - chosen[:size]).mean()
        total = total + settings.conservative * terms["conservative"]
    if triplets is not None:
        xy, yz, xz = chosen[size:].unflatten(0, (3, -1))
        if model.goal_kind == "state":
            # From y on, the best action and one more step: d((s, a), g) does not count the step that a takes.
            yz = model.spec.discount * all_actions[size:].unflatten(0, (3, -1))[1].amax(-1)
        terms["triangle"] = triangle_regularizer(xy, yz, xz)
        total = total + settings.triangle * terms["triangle"]
    return loss._replace(value=total)


def _td_loss(predicted: Tensor, y: Tensor) -> Loss:
    loss = F.mse_loss(predicted, y)
    return Loss(loss, {"td": loss}, predicted.detach(), y)


class MboldLearner(Learner):
    """A model with a Polyak-averaged target network."""

    MODULES = ("model", "target")
    sampler: GoalSampler

    def __init__(
        self, model: QModel, observations: Tensor, dataset: Dataset, settings: MboldSettings, seed: int
    ) -> None:
        sampler = GoalSampler(dataset, settings.goals, seed)
        super().__init__(model, observations, settings, sampler, dataset.num_transitions)
        self.settings = settings
        self.target = copy.deepcopy(model).eval().requires_grad_(False)
        # Collected once: walking through all modules in every step takes too long.
        self._parameters = tuple(self.target.parameters()), tuple(self.model.parameters())
        self._buffers = tuple(zip(self.target.buffers(), self.model.buffers(), strict=True))

    @property
    def loss_terms(self) -> tuple[str, ...]:
        optional = {"conservative": self.settings.conservative > 0, "triangle": self.settings.triangle > 0}
        return ("td", *(name for name, used in optional.items() if used))

    def loss(self) -> Loss:
        settings, device = self.settings, self.observations.device
        batch = self.sampler.sample(settings.batch_size).to(device)
        triplets = None
        if settings.triangle > 0:
            states, actions = self.sampler.sample_pairs(3 * settings.triangle_triplets)
            triplets = PairTriplets(states.view(3, -1).to(device), actions.view(3, -1).to(device))
        y = mbold_targets(self.target, self.observations, batch)
        return mbold_loss(self.model, y, self.observations, batch, settings, triplets)

    @torch.no_grad()
    def after_step(self) -> None:
        """Polyak averaging of the target's weights; buffers (running statistics) are copied."""
        torch._foreach_lerp_(*self._parameters, 1 - self.settings.polyak)
        for target_buffer, buffer in self._buffers:
            target_buffer.copy_(buffer)
