"""The objectives as one would write them down: every row is encoded as often as it occurs, and every pair is a loop.

Each function draws what a step of the learner would draw, and returns the loss of the step.
"""

import math
from collections import deque

import torch
from torch import Tensor

from qrl.agents.learners.cmd import CmdLearner
from qrl.agents.learners.contrastive import ContrastiveLearner
from qrl.agents.learners.gcbc import GcbcLearner
from qrl.agents.learners.goal_sampler import Batch
from qrl.agents.learners.iql import IqlLearner
from qrl.agents.learners.mad import MadLearner
from qrl.agents.learners.mbold import MboldLearner
from qrl.agents.learners.qrl import QrlLearner
from qrl.agents.learners.tmd import TmdLearner
from qrl.envs.dataset import Dataset
from qrl.q_models import QModel


def rows_of(model: QModel, observations: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
    """The encoded rows of each of `states`, from one batch."""
    rows = model.encode(observations[torch.cat(states)])
    return torch.split(rows, [len(part) for part in states])


def mean(values: list[Tensor]) -> Tensor:
    return torch.stack(values).mean()


def target_before_arrival(y: Tensor, batch: Batch, i: int, model: QModel) -> Tensor:
    """`y`, unless the transition reaches its goal."""
    if model.goal_kind == "state":
        return torch.ones_like(y) if batch.next_states[i] == batch.goals[i] else y
    if batch.states[i] == batch.goals[i] and batch.actions[i] == batch.goal_actions[i]:
        return torch.ones_like(y)
    return torch.full_like(y, model.spec.discount) if batch.next_states[i] == batch.goals[i] else y


def mbold_loss(learner: MboldLearner, dataset: Dataset) -> Tensor:
    """With its options, but without regularizers."""
    model, target, settings = learner.model, learner.target, learner.settings
    gamma = model.spec.discount
    batch = learner.sampler.sample(settings.batch_size)
    rows, goals = rows_of(model, learner.observations, batch.states, batch.goals)
    with torch.no_grad():
        next_rows, next_goals = rows_of(target, learner.observations, batch.next_states, batch.goals)
    ways = shortest_ways(dataset)
    losses = []
    for i, b in enumerate(batch.goal_actions):
        with torch.no_grad():
            y = gamma * max(
                target.discounted(next_rows[i], torch.tensor(action), next_goals[i], b)
                for action in range(model.spec.num_actions)
            )
            steps = math.inf
            if settings.bound == "trajectory":
                steps = batch.hindsight[i].item()
            elif settings.bound == "graph":
                same = batch.states[i] == batch.goals[i] and batch.actions[i] == b
                steps = 0 if same else 1 + ways[int(batch.next_states[i])].get(int(batch.goals[i]), math.inf)
            if model.goal_kind == "state":  # the step of the action itself does not count
                steps = steps - 1 if steps > 0 else math.inf
            y = y.clamp(min=gamma**steps)
            y = target_before_arrival(y, batch, i, model).clamp(0, 1)
        predicted = model.discounted(rows[i], batch.actions[i], goals[i], b)
        if settings.loss == "mse":
            losses.append((predicted - y) ** 2)
        else:
            d, d_target = (min_distance(value, gamma, settings.max_distance) for value in (predicted, y))
            error, delta = (d - d_target).abs(), settings.huber_delta
            weight = settings.expectile if d < d_target else 1 - settings.expectile
            losses.append(2 * weight * (error**2 / 2 if error < delta else delta * (error - delta / 2)))
    return mean(losses)


def min_distance(discounted: Tensor, gamma: float, most: float) -> Tensor:
    """min(d, most), of D = gamma**d."""
    return discounted.log() / math.log(gamma) if discounted > gamma**most else torch.full_like(discounted, most)


def shortest_ways(dataset: Dataset) -> dict[int, dict[int, int]]:
    """Steps from each state to those that the data leads to from it, by breadth-first search."""
    following: dict[int, set[int]] = {state: set() for state in range(len(dataset.observations))}
    for source in dataset.sources:
        following[int(dataset.states[source])].add(int(dataset.states[source + 1]))
    ways = {}
    for start in following:
        steps, queue = {start: 0}, deque([start])
        while queue:
            state = queue.popleft()
            for successor in following[state] - steps.keys():
                steps[successor] = steps[state] + 1
                queue.append(successor)
        ways[start] = steps
    return ways


def qrl_loss(learner: QrlLearner) -> Tensor:
    """Of the model only: the multipliers are constants."""
    model, settings, sampler = learner.model, learner.settings, learner.sampler
    transitions, s, a, following, b = sampler.sample_constraints(settings.batch_size)
    x, x_actions = sampler.sample_any_pairs(settings.batch_size)
    y, y_actions = sampler.sample_any_pairs(settings.batch_size)
    before, after, from_rows, to_rows = rows_of(model, learner.observations, s, following, x, y)
    pushes, excesses, weighted = [], [], []
    for i in range(settings.batch_size):
        d = model.distance(from_rows[i], x_actions[i], to_rows[i], y_actions[i])
        pushes.append(settings.softness * torch.log(1 + torch.exp((settings.offset - d) / settings.softness)))
        assert s[i] != following[i] or a[i] != b[i]
        excess = (model.distance(before[i], a[i], after[i], b[i]) - 1).clamp(min=0)
        excesses.append(excess)
        if settings.constraint == "each":
            multipliers = learner.constraint.multipliers.view(-1, model.spec.num_actions)
            weighted.append(multipliers[transitions[i], b[i]] * excess)
    squares = mean([excess**2 for excess in excesses])
    if settings.constraint == "each":
        return mean(pushes) + mean(weighted) + squares
    return mean(pushes) + learner.constraint.multipliers * (squares - settings.epsilon**2)


def mad_loss(learner: MadLearner) -> Tensor:
    model, settings = learner.model, learner.settings
    batch = learner.sampler.sample(settings.batch_size)
    g, b = learner.sampler.sample_pairs(settings.batch_size)
    rows, goals, others = rows_of(model, learner.observations, batch.states, batch.goals, g)
    hindsight, push, bound = [], [], [torch.tensor(0.0, dtype=torch.float64)]
    for i, h in enumerate(batch.hindsight.tolist()):
        d = model.distance(rows[i], batch.actions[i], others[i], b[i])
        push.append((1 - d / settings.max_distance).clamp(min=0) ** 2)
        if 0 < h < math.inf:
            d = model.distance(rows[i], batch.actions[i], goals[i], batch.goal_actions[i])
            hindsight.append((d / h - 1) ** 2)
            if h <= settings.bound_steps:
                bound.append((d - h).clamp(min=0) ** 2)
    loss = settings.hindsight_weight * mean(hindsight) + settings.push_weight * mean(push)
    return loss + settings.bound_weight * sum(bound) / max(len(bound) - 1, 1)


def energies(learner: ContrastiveLearner, rows: Tensor, goals: Tensor, batch: Batch) -> list[list[Tensor]]:
    """p_ij = d(x_i, y_j) - c(y_j), with d in nats."""
    potentials = learner.potential(learner.observations[batch.goals])
    nats = -math.log(learner.settings.discount)
    size = range(len(batch.states))
    return [
        [
            nats * learner.model.distance(rows[i], batch.actions[i], goals[j], batch.goal_actions[j])
            - potentials[j, batch.goal_actions[j]]
            for j in size
        ]
        for i in size
    ]


def info_nce(p: list[list[Tensor]]) -> Tensor:
    """mean_i p_ii + 1/2 mean_i [logsumexp_j(-p_ij) + logsumexp_j(-p_ji)]"""
    size = range(len(p))
    rows = [torch.log(sum((torch.exp(-p[i][j]) for j in size), torch.zeros(()))) for i in size]
    columns = [torch.log(sum((torch.exp(-p[j][i]) for j in size), torch.zeros(()))) for i in size]
    return mean([p[i][i] for i in size]) + (mean(rows) + mean(columns)) / 2


def cmd_loss(learner: CmdLearner) -> Tensor:
    batch = learner.sampler.sample(learner.settings.batch_size)
    rows, goals = rows_of(learner.model, learner.observations, batch.states, batch.goals)
    return info_nce(energies(learner, rows, goals, batch))


def tmd_loss(learner: TmdLearner) -> Tensor:
    model, settings = learner.model, learner.settings
    batch = learner.sampler.sample(settings.batch_size)
    rows, goals, following = rows_of(model, learner.observations, batch.states, batch.goals, batch.next_states)
    nats = -math.log(settings.discount)
    backups = []
    for i in range(settings.batch_size):
        for j in (i, (i + 1) % settings.batch_size):
            b = batch.goal_actions[j]
            if batch.states[i] == batch.goals[j] and batch.actions[i] == b:
                continue
            d = nats * model.distance(rows[i], batch.actions[i], goals[j], b)
            after = torch.zeros_like(d)
            if batch.next_states[i] != batch.goals[j]:
                after = nats * min(
                    model.distance(following[i], torch.tensor(action), goals[j], b)
                    for action in range(model.spec.num_actions)
                )
            delta = d - after.detach()
            backups.append(settings.discount * delta.exp() - d if delta <= settings.linear_from else delta)
    return info_nce(energies(learner, rows, goals, batch)) + settings.backup_weight * mean(backups)


def iql_loss(learner: IqlLearner) -> Tensor:
    model, value, settings = learner.model, learner.value, learner.settings
    batch = learner.sampler.sample(settings.batch_size)
    rows, goals = rows_of(model, learner.observations, batch.states, batch.goals)
    with torch.no_grad():
        target_rows, target_goals = rows_of(learner.target, learner.observations, batch.states, batch.goals)
        next_rows, next_goals = rows_of(value.eval(), learner.observations, batch.next_states, batch.goals)
    value_rows, value_goals = rows_of(value.train(), learner.observations, batch.states, batch.goals)
    any_action = torch.tensor(0)
    td, fit = [], []
    for i, b in enumerate(batch.goal_actions):
        with torch.no_grad():
            y = settings.discount * value.discounted(next_rows[i], any_action, next_goals[i], b)
            y = target_before_arrival(y, batch, i, model)
            q = learner.target.discounted(target_rows[i], batch.actions[i], target_goals[i], b)
        td.append((model.discounted(rows[i], batch.actions[i], goals[i], b) - y) ** 2)
        u = q - value.discounted(value_rows[i], any_action, value_goals[i], b)
        fit.append((settings.expectile if u > 0 else 1 - settings.expectile) * u**2)
    return mean(td) + mean(fit)


def gcbc_loss(learner: GcbcLearner) -> Tensor:
    model = learner.model
    batch = learner.sampler.sample(learner.settings.batch_size)
    rows, goals = rows_of(model, learner.observations, batch.states, batch.goals)
    losses = []
    actions = [torch.tensor(action) for action in range(model.spec.num_actions)]
    for i, taken in enumerate(batch.actions):
        # The mean over the goal's actions, all of which are one action if goals are states.
        distances = [mean([model.distance(rows[i], a, goals[i], b) for b in actions]) for a in actions]
        weights = [torch.exp(-d) for d in distances]
        losses.append(-torch.log(weights[taken] / sum(weights, torch.zeros(()))))
    return mean(losses)
