"""The training step against the naive one, and against what the machine's matrix products allow."""

import copy
from collections.abc import Callable
from typing import Any

import torch

from agents.goal_sampler import GoalSampler
from agents.settings import TrainSettings
from agents.training import AgentTraining
from benchmarks.measure import matrix_rate, milliseconds, table
from benchmarks.naive import NaiveLearner
from envs.collector import CollectorSettings, collect
from envs.dataset import Dataset
from qrl.encoders import MLP


def paper_training(name: str, compiled: bool = False, dataset: Dataset | None = None, **changes: Any) -> AgentTraining:
    """A training with the paper's sizes: width 2048, batches of 1,024."""
    overrides = [f"model.name={name}", f"compile={'on' if compiled else 'off'}"]
    overrides += [f"{key.replace('__', '.')}={value}" for key, value in changes.items()]
    settings = TrainSettings.load("paper", overrides)
    return AgentTraining.build(settings, dataset or collect(CollectorSettings()))


def necessary_operations(training: AgentTraining) -> float:
    """Floating-point operations of the matrix products that a step cannot do without, averaged over batches."""
    model = training.learner.model
    layers = [
        [layer.in_features * layer.out_features for layer in (*encoder.hidden, encoder.output)]
        for encoder in model.modules()
        if isinstance(encoder, MLP)
    ]
    total, batches = 0.0, 20
    sampler = copy.deepcopy(training.sampler)
    for _ in range(batches):
        batch = sampler.sample(training.settings.learner.batch_size)
        target_rows = len(torch.unique(torch.cat([batch.next_states, batch.goals])))
        rows = len(torch.unique(torch.cat([batch.states, batch.goals])))
        for sizes in layers:
            # Forward and, for the weights and all inputs but the first, backward.
            total += 2 * sum(sizes) * target_rows + 2 * rows * (3 * sum(sizes) - sizes[0])
    return total / batches


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
    times = milliseconds({**steps, **{name: learner_step(each) for name, each in others.items()}}, rounds=25)
    rate, needed = matrix_rate(), necessary_operations(eager)
    rows = []
    for name in ("naive", "eager", "compiled"):
        share = f"{needed / times[name] / 1e6 / rate:.0%}"
        rows.append([f"iqe-maxmean, {name}", f"{times[name]:.0f}", f"{times['naive'] / times[name]:.1f}x", share])
    for name in others:
        against = f"{times[name] / times['compiled']:.2f}x the time of iqe-maxmean, compiled"
        rows.append([name, f"{times[name]:.0f}", against, "-"])
    note = (
        f"Matrix products of this machine: {rate:.0f} GFLOP/s (2048 x 2048 x 2048, float32). A step needs "
        f"{needed / 1e9:.1f} GFLOP of them: one forward pass of the target and one forward and backward pass of the "
        "model over the distinct states of a batch. Baseline: `NaiveLearner` in benchmarks/naive.py. What limits: the "
        "matrix products themselves, which are less efficient for some 240 rows than for 2048; then the head, Adam and "
        "the target's average, which pass over all weights."
    )
    columns = ["step (width 2048, batch 1,024)", "ms", "faster than naive by", "share of the matrix-product rate"]
    return table("Training step", columns, rows, note)
