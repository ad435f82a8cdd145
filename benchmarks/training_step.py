"""The training step against the naive one, and against the rate of the machine's matrix products."""

import copy
import statistics
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.measure import PRODUCT, PRODUCT_OPERATIONS, matrix_product, milliseconds, table
from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.mbold import MboldLearner
from qrl.agents.runs.settings import TrainSettings
from qrl.agents.runs.trainer import Trainer
from qrl.encoders import MLP
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from tests.agents.learners.naive import NaiveLearner


def paper_trainer(name: str, compiled: bool = False, dataset: Dataset | None = None, **changes: Any) -> Trainer:
    """A trainer with the paper's sizes: width 2048, batches of 1,024."""
    overrides = [f"model.name={name}", f"compile={'on' if compiled else 'off'}"]
    overrides += [f"{key.replace('__', '.')}={value}" for key, value in changes.items()]
    settings = TrainSettings.load("paper", overrides)
    return Trainer.build(settings, dataset or collect(CollectorSettings()))


def operations(trainer: Trainer, target_rows: float, rows: float) -> float:
    """Floating-point operations of the matrix products of a step that encodes this many rows."""
    total = 0.0
    for encoder in trainer.learner.model.modules():
        if isinstance(encoder, MLP):
            sizes = [layer.weight.numel() for layer in (*encoder.hidden, encoder.output)]
            # Forward and, for the weights and all inputs but the first, backward.
            total += 2 * sum(sizes) * target_rows + 2 * rows * (3 * sum(sizes) - sizes[0])
    return total


def necessary_operations(trainer: Trainer) -> float:
    """The minimum per step, averaged over batches: every distinct state is encoded once."""
    sampler, counts = GoalSampler(trainer.dataset, _learner(trainer).settings.goals, seed=0), []
    for _ in range(20):
        batch = sampler.sample(trainer.settings.learner.batch_size)
        target_rows = len(torch.unique(torch.cat([batch.next_states, batch.goals])))
        rows = len(torch.unique(torch.cat([batch.states, batch.goals])))
        counts.append(operations(trainer, target_rows, rows))
    return statistics.fmean(counts)


def learner_step(trainer: Trainer) -> Callable[[], Any]:
    """A step of the learner, as a function to be timed."""
    return lambda: trainer.learner.step(log=False)


def _learner(trainer: Trainer) -> MboldLearner:
    assert isinstance(trainer.learner, MboldLearner)
    return trainer.learner


def _naive_step(trainer: Trainer) -> Callable[[], Any]:
    learner = _learner(trainer)
    naive = NaiveLearner(copy.deepcopy(learner.model), learner.observations, learner.settings, learner.num_steps)
    sampler = GoalSampler(trainer.dataset, learner.settings.goals, seed=0)
    return lambda: naive.step(sampler.sample(learner.settings.batch_size))


def main() -> str:
    dataset = collect(CollectorSettings())
    eager, compiled = (paper_trainer("iqe-maxmean", flag, dataset) for flag in (False, True))
    others = {name: paper_trainer(name, True, dataset) for name in ("mrn-fixed", "pqe-gg")}
    steps = {"naive": _naive_step(eager), "eager": learner_step(eager), "compiled": learner_step(compiled)}
    steps |= {name: learner_step(trainer) for name, trainer in others.items()}
    times = milliseconds({**steps, "product": matrix_product()}, rounds=25)
    rate, needed = PRODUCT_OPERATIONS / times["product"] / 1e6, necessary_operations(eager)
    rows = []
    for name in ("naive", "eager", "compiled"):
        fraction = f"{times.faster(name, 'product') * needed / PRODUCT_OPERATIONS:.0%}"
        rows.append([f"iqe-maxmean, {name}", f"{times[name]:.0f}", f"{times.faster(name, 'naive'):.1f}x", fraction])
    for name in others:
        against = f"{times.faster('compiled', name):.2f}x the time of iqe-maxmean, compiled"
        rows.append([name, f"{times[name]:.0f}", against, "-"])
    every = 2 * eager.settings.learner.batch_size
    note = (
        f"Matrix products of this machine: {rate:.0f} GFLOP/s ({PRODUCT} x {PRODUCT} x {PRODUCT}, float32). A step "
        f"needs {needed / 1e9:.1f} GFLOP of them: one forward pass of the target and one forward and backward pass of "
        "the model over the distinct states of a batch. The naive step does "
        f"{operations(eager, every, every) / needed:.1f} times as many. Baseline: `NaiveLearner` in "
        "tests/agents/learners/naive.py. The bottleneck is the matrix products, followed by Adam and the target's "
        "average, which pass over all weights, and the head."
    )
    columns = ["step (width 2048, batch 1,024)", "ms", "speedup over naive", "fraction of the matrix-product rate"]
    return table("Training step", columns, rows, note)
