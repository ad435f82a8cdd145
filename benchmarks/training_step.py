"""The training step against the naive one, and against what the machine's matrix products allow."""

import copy
import statistics
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.measure import PRODUCT, PRODUCT_OPERATIONS, matrix_product, milliseconds, table
from benchmarks.naive import NaiveLearner
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.runs.settings import TrainSettings
from qrl.agents.runs.training import AgentTraining
from qrl.encoders import MLP
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset


def paper_training(name: str, compiled: bool = False, dataset: Dataset | None = None, **changes: Any) -> AgentTraining:
    """A training with the paper's sizes: width 2048, batches of 1,024."""
    overrides = [f"model.name={name}", f"compile={'on' if compiled else 'off'}"]
    overrides += [f"{key.replace('__', '.')}={value}" for key, value in changes.items()]
    settings = TrainSettings.load("paper", overrides)
    return AgentTraining.build(settings, dataset or collect(CollectorSettings()))


def operations(training: AgentTraining, target_rows: float, rows: float) -> float:
    """Floating-point operations of the matrix products of a step that encodes so many rows."""
    total = 0.0
    for encoder in training.learner.model.modules():
        if isinstance(encoder, MLP):
            sizes = [layer.weight.numel() for layer in (*encoder.hidden, encoder.output)]
            # Forward and, for the weights and all inputs but the first, backward.
            total += 2 * sum(sizes) * target_rows + 2 * rows * (3 * sum(sizes) - sizes[0])
    return total


def necessary_operations(training: AgentTraining) -> float:
    """Those that a step cannot do without, averaged over batches: every distinct state is encoded once."""
    sampler, found = copy.deepcopy(training.sampler), []
    for _ in range(20):
        batch = sampler.sample(training.settings.learner.batch_size)
        target_rows = len(torch.unique(torch.cat([batch.next_states, batch.goals])))
        rows = len(torch.unique(torch.cat([batch.states, batch.goals])))
        found.append(operations(training, target_rows, rows))
    return statistics.fmean(found)


def learner_step(training: AgentTraining) -> Callable[[], Any]:
    """A step of the learner, as a function to be timed."""
    return lambda: training.learner.update(training.sampler, with_metrics=False)


def _naive_step(training: AgentTraining) -> Callable[[], Any]:
    settings = training.settings.learner
    model = copy.deepcopy(training.learner.model)
    naive = NaiveLearner(model, training.learner.observations, settings, training.learner.num_steps)
    sampler = GoalSampler(training.dataset, settings.goals, seed=0)
    return lambda: naive.update(sampler.sample(settings.batch_size))


def main() -> str:
    dataset = collect(CollectorSettings())
    eager, compiled = (paper_training("iqe-maxmean", flag, dataset) for flag in (False, True))
    others = {name: paper_training(name, True, dataset) for name in ("mrn-fixed", "pqe-gg")}
    steps = {"naive": _naive_step(eager), "eager": learner_step(eager), "compiled": learner_step(compiled)}
    steps |= {name: learner_step(training) for name, training in others.items()}
    times = milliseconds({**steps, "product": matrix_product()}, rounds=25)
    rate, needed = PRODUCT_OPERATIONS / times["product"] / 1e6, necessary_operations(eager)
    rows = []
    for name in ("naive", "eager", "compiled"):
        share = f"{times.faster(name, 'product') * needed / PRODUCT_OPERATIONS:.0%}"
        rows.append([f"iqe-maxmean, {name}", f"{times[name]:.0f}", f"{times.faster(name, 'naive'):.1f}x", share])
    for name in others:
        against = f"{times.faster('compiled', name):.2f}x the time of iqe-maxmean, compiled"
        rows.append([name, f"{times[name]:.0f}", against, "-"])
    every = 2 * eager.settings.learner.batch_size
    note = (
        f"Matrix products of this machine: {rate:.0f} GFLOP/s ({PRODUCT} x {PRODUCT} x {PRODUCT}, float32). A step "
        f"needs {needed / 1e9:.1f} GFLOP of them: one forward pass of the target and one forward and backward pass of "
        "the model over the distinct states of a batch. The naive step does "
        f"{operations(eager, every, every) / needed:.1f} times as many. Baseline: `NaiveLearner` in "
        "benchmarks/naive.py. What limits: the matrix products; then Adam and the target's average, which pass over "
        "all weights, and the head."
    )
    columns = ["step (width 2048, batch 1,024)", "ms", "faster than naive by", "share of the matrix-product rate"]
    return table("Training step", columns, rows, note)
