"""Temporal metric distillation: the contrastive loss of cmd, and a backup that prefers the shortest path.

With d in nats, that is -log(gamma) times the distance in steps, and delta = d(x, y) - min_b d((s', b), y) whose second
part is a fixed target:

    loss = InfoNCE + zeta E [gamma exp(delta) - d(x, y)  if delta <= t,  else delta]

The backup's optimum is delta = -log(gamma): one step more than after the best action. Without it, d would be the
successor distance of the policy that collected the data (see cmd). It is taken for every x with its own goal and with
the goal of another x of the batch, so that it also joins trajectories.
"""

import torch
from torch import Tensor

from qrl.agents.learners.base import Loss, encode_distinct
from qrl.agents.learners.contrastive import ContrastiveLearner
from qrl.agents.learners.registry import register_learner
from qrl.agents.learners.settings import TmdSettings


def backup_loss(distance: Tensor, following: Tensor, discount: float, linear_from: float) -> Tensor:
    """The mean backup of distances d(x, y) and min_b d((s', b), y) in nats; finite for every delta."""
    delta = distance - following.detach()
    curved = discount * delta.clamp(max=linear_from).exp() - distance
    return torch.where(delta <= linear_from, curved, delta).mean()


@register_learner("tmd", TmdSettings)
class TmdLearner(ContrastiveLearner):
    reports = (*ContrastiveLearner.reports, "loss_backup", "backup_steps")
    settings: TmdSettings

    def loss(self) -> Loss:
        settings = self.settings
        batch = self.sampler.sample(settings.batch_size).to(self.observations.device)
        rows, (s, g, following) = encode_distinct(
            self.model, self.observations, batch.states, batch.goals, batch.next_states
        )
        distances = self.all_distances(rows, s, g, batch)
        contrast, reports = self.contrast(distances, batch)
        # Column i of row i is its own goal, column i + 1 that of another x.
        others = torch.arange(len(s), device=s.device).roll(-1)
        columns = torch.stack([torch.arange(len(s), device=s.device), others])
        own_and_other = distances.gather(1, columns.T).T.flatten()
        goals, goal_actions = batch.goals[columns].flatten(), batch.goal_actions[columns].flatten()
        with torch.no_grad():
            after = self.model.distance_at(rows, following.repeat(2), None, g[columns].flatten(), goal_actions).amin(-1)
            after = torch.where(batch.next_states.repeat(2) == goals, 0.0, after)
        at_goal = (batch.states.repeat(2) == goals) & (batch.actions.repeat(2) == goal_actions)
        x_to_y, after = own_and_other[~at_goal], after[~at_goal]
        backup = backup_loss(self.scale * x_to_y, self.scale * after, settings.discount, settings.linear_from)
        reports |= {"loss_backup": backup, "backup_steps": (x_to_y - after).detach()}
        return Loss(contrast + settings.backup_weight * backup, reports)
