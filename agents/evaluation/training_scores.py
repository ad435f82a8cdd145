"""What is measured against the ground truth during training."""

from torch import Tensor

from qrl.agents.evaluation.measurements import Measurements, Tasks
from qrl.agents.evaluation.metrics import METRICS, columns
from qrl.agents.learners.settings import Learns
from qrl.agents.planning.planner import TablePolicy, all_steps_to_goal, exhaustive_tasks
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.q_models.base import QModel


def score_planning(
    model: QModel, observations: Tensor, dataset: Dataset, seed: int, learns: Learns = "distances"
) -> dict[str, float]:
    """The metrics worth their time during training, by column; none without a layout."""
    if dataset.layout is None:
        return {}
    truth = ground_truth(dataset.layout)
    steps = all_steps_to_goal(model, observations)
    starts, goals = exhaustive_tasks(truth)
    policy = TablePolicy.greedy(steps, truth.layout.observations, seed)
    tasks = Tasks.of(policy.walk(truth, starts, goals), truth.distances[starts, goals])
    estimates = steps if learns == "distances" else None
    measurements = Measurements(tasks=tasks, dataset=dataset, truth=truth, policy=policy, steps=estimates)
    scores = {name: metric.compute(measurements) for name, metric in columns(METRICS).items() if metric.in_training}
    return {name: value for name, value in scores.items() if value is not None}
