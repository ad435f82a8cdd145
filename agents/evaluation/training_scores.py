"""What is measured during training: against the ground truth, and on held-out trajectories."""

import numpy as np
import torch
from torch import Tensor

from qrl.agents.evaluation.measurements import Measurements, Tasks
from qrl.agents.evaluation.metric import columns
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.validation import Validation
from qrl.agents.learners.settings import Learns
from qrl.agents.planning.planner import Ids, LazyPolicy, RandomPolicy, Steps, TablePolicy, all_steps_to_goal, follow
from qrl.common.seeds import derived_seed
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import MAX_TABLE, GroundTruth, ground_truth
from qrl.q_models.base import QModel

SAMPLED_TASKS = 100  # in worlds too large to plan all of them


def score_planning(
    model: QModel,
    observations: Tensor,
    dataset: Dataset,
    seed: int,
    learns: Learns = "distances",
    validation: Validation | None = None,
) -> dict[str, float]:
    """The metrics worth their time during training, by column; those of planning need a world."""
    if dataset.world is None:
        measurements = Measurements(tasks=None, dataset=dataset)
    else:
        measure = _all_tasks if len(observations) <= MAX_TABLE else _sampled_tasks
        measurements = measure(model, observations, dataset, ground_truth(dataset.world), seed, learns)
    measurements.validation = validation
    scored = {name: metric for name, metric in columns(METRICS).items() if metric.in_training}
    if dataset.world is None:
        scored = {name: metric for name, metric in scored.items() if metric.of_held_out}
    scores = {name: metric.compute(measurements) for name, metric in scored.items()}
    return {name: value for name, value in scores.items() if value is not None}


def random_success(dataset: Dataset, seed: int) -> float | None:
    """The success rate of random actions in what `score_planning` plans, to compare with; None without a world."""
    if dataset.world is None:
        return None
    truth = ground_truth(dataset.world)
    policy = RandomPolicy(truth.world.num_actions, derived_seed(seed, "random actions"))
    if truth.tabulated:
        return float(follow(policy, truth, *truth.all_tasks()).success.mean())
    starts, goals = truth.sample_tasks(np.random.default_rng(derived_seed(seed, "tasks")), SAMPLED_TASKS)
    return float(policy.walk(truth, starts, goals).success.mean())


def _all_tasks(
    model: QModel, observations: Tensor, dataset: Dataset, truth: GroundTruth, seed: int, learns: Learns
) -> Measurements:
    steps = all_steps_to_goal(model, observations)
    starts, goals = truth.all_tasks()
    policy = TablePolicy.greedy(steps, truth.world.observations, seed)
    tasks = Tasks.of(follow(policy, truth, starts, goals), truth.distances[starts, goals])
    estimates = steps if learns == "distances" else None
    return Measurements(tasks=tasks, dataset=dataset, truth=truth, policy=policy, steps=estimates)


def _sampled_tasks(
    model: QModel, observations: Tensor, dataset: Dataset, truth: GroundTruth, seed: int, learns: Learns
) -> Measurements:
    """Tasks of a large world; distances between all states are never computed."""

    def steps(states: Ids, goals: Ids) -> Steps:
        rows, targets = (model.encode(observations[torch.from_numpy(ids)]) for ids in (states, goals))
        remaining: Steps = model.steps_to_goal(rows, targets).cpu().numpy()
        return remaining

    starts, goals = truth.sample_tasks(np.random.default_rng(derived_seed(seed, "tasks")), SAMPLED_TASKS)
    policy = LazyPolicy(steps, truth.world.observations, seed, RandomPolicy(truth.world.num_actions, seed))
    was_training = model.training
    with torch.no_grad():
        model.eval()
        outcome = policy.walk(truth, starts, goals)
        model.train(was_training)
    return Measurements(tasks=Tasks.of(outcome, truth.between(starts, goals)), dataset=dataset)
