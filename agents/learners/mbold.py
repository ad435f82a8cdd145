"""Modified MBOLD: offline Q-learning of discounted distances D = gamma**d to relabelled goals.

The targets, for a deterministic world with unit costs and goals (g, a_g) that are state-action pairs:

    y = 1                                         if (s, a) = (g, a_g)
    y = gamma                                     else if s' = g
    y = gamma max_b D_target((s', b), (g, a_g))   otherwise

and for goals that are states: y = 1 if s' = g, else gamma max_b D_target((s', b), g). Whether a goal is reached is
decided by the identity of states; a trajectory cut by its step cap does not end there.

Options: with `bound`, y is at least gamma**u for a path of u steps in the data; with `loss: huber`, the Huber loss of
min(d, max_distance) replaces the mean squared error of D. It weighs distances that are too short more (`expectile`):
the maximum over b prefers them, and the bound only ever shortens a target, so that they would spread.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from qrl.agents.learners.base import (
    DISCOUNT_REPORTS,
    Learner,
    Loss,
    PolyakAverage,
    discount_reports,
    discounted,
    make_target,
    triangle_regularizer,
)
from qrl.agents.learners.bounds import Bound, along_trajectory, make_bound, stochastic
from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.registry import register_learner
from qrl.agents.learners.settings import MboldSettings
from qrl.envs.dataset import Dataset
from qrl.q_models.base import QModel, pick


@dataclass(frozen=True)
class PairTriplets:
    """Three state-action pairs x, y, z for the triangle regularizer; fields are (3, triplets)."""

    states: Tensor
    actions: Tensor


@torch.no_grad()
def mbold_targets(target: QModel, observations: Tensor, batch: Batch, bound: Bound | None = None) -> Tensor:
    """(batch,): the targets y above, within [0, 1]."""
    gamma = target.spec.discount
    next_discounted = discounted(target, observations, batch.next_states, None, batch.goals, batch.goal_actions)
    y = gamma * next_discounted.amax(-1)
    if bound is not None:
        y = torch.maximum(y, least_discounted(bound(batch), target))
    return arrival_targets(y, batch, target)


def arrival_targets(y: Tensor, batch: Batch, model: QModel) -> Tensor:
    """The targets y where the goal is not reached yet; within [0, 1]."""
    arrived = batch.next_states == batch.goals
    if model.goal_kind == "state":
        return torch.where(arrived, 1.0, y).clamp(0, 1)
    at_goal = (batch.states == batch.goals) & (batch.actions == batch.goal_actions)
    return torch.where(at_goal, 1.0, torch.where(arrived, model.spec.discount, y)).clamp(0, 1)


def least_discounted(steps: Tensor, model: QModel) -> Tensor:
    """The least D of goals that are at most so many steps from (s, a) to (g, a_g) away."""
    if model.goal_kind == "state":  # d((s, a), g) does not count the step that a takes; 0 steps are no path back to s
        steps = torch.where(steps > 0, steps - 1, torch.inf)
    return model.spec.discount**steps


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
    size = len(y)
    if settings.conservative_weight == 0 and triplets is None:
        predicted = discounted(model, observations, s, a, g, b)
        td = td_loss(predicted, y, model.spec.discount, settings)
        return Loss(td, {"loss_td": td, **discount_reports(predicted, y, model)})
    all_actions = discounted(model, observations, s, None, g, b)
    chosen = pick(all_actions, a, -1)
    total = td_loss(chosen[:size], y, model.spec.discount, settings)
    terms = {"loss_td": total}
    if settings.conservative_weight > 0:
        mean = all_actions[:size].logsumexp(-1) - math.log(all_actions.shape[-1])  # 0 if all actions are equal
        terms["loss_conservative"] = (mean - chosen[:size]).mean()
        total = total + settings.conservative_weight * terms["loss_conservative"]
    if triplets is not None:
        xy, yz, xz = chosen[size:].unflatten(0, (3, -1))
        if model.goal_kind == "state":
            # From y on, the best action and one more step: d((s, a), g) does not count the step that a takes.
            yz = model.spec.discount * all_actions[size:].unflatten(0, (3, -1))[1].amax(-1)
        terms["loss_triangle"] = triangle_regularizer(xy, yz, xz)
        total = total + settings.triangle * terms["loss_triangle"]
    return Loss(total, terms | discount_reports(chosen[:size], y, model))


def td_loss(predicted: Tensor, y: Tensor, discount: float, settings: MboldSettings) -> Tensor:
    if settings.loss == "mse":
        return F.mse_loss(predicted, y)
    least = max(discount**settings.max_distance, torch.finfo(predicted.dtype).tiny)  # of D; its log is finite
    distance, target = (value.clamp_min(least).log() / math.log(discount) for value in (predicted, y))
    weights = torch.where(distance < target, settings.expectile, 1 - settings.expectile)
    return 2 * (weights * F.huber_loss(distance, target, reduction="none", delta=settings.huber_delta)).mean()


def _bound_notices(settings: MboldSettings, dataset: Dataset, bound: Bound | None) -> list[str]:
    """What becomes of a bound that the data does not allow."""
    if settings.bound == "auto" and bound is None and (chance := stochastic(dataset)) is not None:
        return [f"learner.bound=auto bounds no targets: {chance}"]
    if settings.bound in ("auto", "graph") and bound is along_trajectory:
        return ["learner.bound: too many distinct states for shortest paths; trajectories bound the targets instead"]
    return []


@register_learner("mbold", MboldSettings)
class MboldLearner(Learner):
    """A model with a Polyak-averaged target network."""

    settings: MboldSettings
    sampler: GoalSampler

    def __init__(
        self, model: QModel, observations: Tensor, dataset: Dataset, settings: MboldSettings, seed: int
    ) -> None:
        super().__init__(model, observations, dataset, settings, seed)
        self.target = make_target(model)
        self._average = PolyakAverage(self.target, model, settings.polyak)
        self.bound = make_bound(settings.bound, dataset)
        self._notices = _bound_notices(settings, dataset, self.bound)

    @property
    def reports(self) -> tuple[str, ...]:
        optional = {"conservative": self.settings.conservative_weight > 0, "triangle": self.settings.triangle > 0}
        terms = ("td", *(name for name, used in optional.items() if used))
        return (*(f"loss_{name}" for name in terms), *DISCOUNT_REPORTS)

    def notices(self) -> list[str]:
        return self._notices

    def loss(self) -> Loss:
        settings, device = self.settings, self.observations.device
        batch = self.sampler.sample(settings.batch_size).to(device)
        triplets = None
        if settings.triangle > 0:
            states, actions = self.sampler.sample_pairs(3 * settings.triangle_triplets)
            triplets = PairTriplets(states.view(3, -1).to(device), actions.view(3, -1).to(device))
        y = mbold_targets(self.target, self.observations, batch, self.bound)
        return mbold_loss(self.model, y, self.observations, batch, settings, triplets)

    def after_step(self) -> None:
        self._average.update()
