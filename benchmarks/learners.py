"""The training step of every learner against that of mbold, with the same model."""

from unittest.mock import patch

from torch import Tensor

from benchmarks.measure import milliseconds, table
from benchmarks.training_step import learner_step
from qrl.agents.learners.registry import find_settings, list_learners
from qrl.agents.runs.model import resolve
from qrl.agents.runs.settings import TrainSettings
from qrl.agents.runs.trainer import Trainer
from qrl.envs.collector import CollectorSettings, collect
from qrl.heads import Head

BASELINE = "mbold"
MODEL, WIDTH = "iqe-maxmean", 512
VARIANTS = {
    "mbold, as in the paper": [
        *(
            "learner.loss=mse",
            "learner.bound=none",
            "learner.conservative=0",
            "learner.goals.balanced=0",
            "learner.fourier=0",
        ),
    ]
}


def settings(*overrides: str) -> TrainSettings:
    """Those of a learner by default, except for the model."""
    return resolve(TrainSettings.load(None, [f"model.name={MODEL}", f"model.width={WIDTH}", *overrides]))


def distances_per_step(trainer: Trainer) -> int:
    """How many distances the heads of all its networks compute in a step."""
    counts: list[int] = []
    between = Head.between

    def counted(head: Head, u: Tensor, v: Tensor) -> Tensor:
        distances = between(head, u, v)
        counts.append(distances.numel())
        return distances

    with patch.object(Head, "between", counted):
        trainer.learner.step(log=False)
    return sum(counts)


def main() -> str:
    names = [name for name in list_learners() if find_settings(name).DATA == "trajectories"]
    cases = {name: [f"learner.name={name}"] for name in names} | VARIANTS
    dataset = collect(CollectorSettings())
    trainers = {name: Trainer.build(settings(*overrides), dataset) for name, overrides in cases.items()}
    distances = {name: distances_per_step(trainer) for name, trainer in trainers.items()}
    times = milliseconds({name: learner_step(trainer) for name, trainer in trainers.items()})
    rows = [
        [
            name,
            f"{trainers[name].settings.learner.batch_size:,}",
            f"{distances[name]:,}",
            f"{times[name]:.0f}",
            f"{times.faster(BASELINE, name):.2f}x",
        ]
        for name in sorted(cases)
    ]
    form = "compiled" if trainers[BASELINE].settings.compile == "on" else "eager"
    note = (
        f"{MODEL}, {form}, width {WIDTH}; each learner with its default batch size. Distances include those without a "
        "gradient, such as those of all actions in the targets of mbold. Contrastive learners (cmd, tmd) cost more, "
        "although their batches are smaller: they compare every state-action pair of a batch with every goal of the "
        "batch, and all of these distances have a gradient. gcbc asks for all pairs of actions: the score of an action "
        "is its mean distance to all actions at the goal. iql trains a second network."
    )
    columns = ["learner", "batch size", "distances per step", "ms", f"time relative to {BASELINE}"]
    return table("Learners", columns, rows, note)
