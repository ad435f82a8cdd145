"""Goal-conditioned behaviour cloning: which action did the data take on its way to the goal?

    loss = -E log pi(a | s, g),   pi(a | s, g) = softmax_a(-steps(s, a, g))

with goals from the future of the same trajectory. It uses a Q-model as a policy: what would be its steps to the goal
after each action are scores, and the greedy planner takes the action with the highest probability. They are no
distances, and are not compared with exact ones.
"""

from torch.nn import functional as F

from qrl.agents.learners.base import Learner, Loss, encode_distinct
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.registry import register_learner
from qrl.agents.learners.settings import GcbcSettings


@register_learner("gcbc", GcbcSettings)
class GcbcLearner(Learner):
    reports = ("accuracy",)
    settings: GcbcSettings
    sampler: GoalSampler

    def loss(self) -> Loss:
        batch = self.sampler.sample(self.settings.batch_size).to(self.observations.device)
        rows, (s, g) = encode_distinct(self.model, self.observations, batch.states, batch.goals)
        scores = -self.model.steps_to_goal(rows.index_select(0, s), rows.index_select(0, g))
        right = scores.detach().argmax(-1) == batch.actions
        return Loss(F.cross_entropy(scores, batch.actions), {"accuracy": right.to(scores.dtype)})
