"""Contrastive metric distillation: the successor distance of the data, by telling futures from other goals.

With x_i = (s, a), y_i the pair a geometric number of steps later on its trajectory, from 0 on, and a learned potential
c of the goal:

    p_ij = -log(gamma) d(x_i, y_j) - c(y_j)
    loss = mean_i p_ii + 1/2 mean_i [logsumexp_j(-p_ij) + logsumexp_j(-p_ji)]

the symmetric InfoNCE over all pairs of a batch. Its optimum is the successor distance of the policy that collected the
data, log(p(y | y) / p(y | x)), here in steps: a path that the data rarely takes is long, even if its steps are few.
"""

from qrl.agents.learners.base import Loss, encode_distinct
from qrl.agents.learners.contrastive import ContrastiveLearner
from qrl.agents.learners.registry import register_learner
from qrl.agents.learners.settings import CmdSettings


@register_learner("cmd", CmdSettings)
class CmdLearner(ContrastiveLearner):
    def loss(self) -> Loss:
        batch = self.sampler.sample(self.settings.batch_size).to(self.observations.device)
        rows, (s, g) = encode_distinct(self.model, self.observations, batch.states, batch.goals)
        return Loss(*self.contrast(self.all_distances(rows, s, g, batch), batch))
