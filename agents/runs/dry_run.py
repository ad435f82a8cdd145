"""What a training run would be, without making it."""

import time

from qrl.agents.learners.base import Learner
from qrl.agents.runs.run import Run
from qrl.catalog import count_parameters
from qrl.common.config_files import dump_yaml

WARM_UP, TIMED = 3, 10


def seconds_per_step(learner: Learner) -> float:
    """Mean of a few timed training steps."""
    for _ in range(WARM_UP):
        learner.step(log=False)
    start = time.monotonic()
    for _ in range(TIMED):
        learner.step(log=False)
    return (time.monotonic() - start) / TIMED


def estimated_seconds(run: Run, per_step: float) -> float:
    """The time of all training steps and evaluations, from the time of one of each."""
    run.trainer.score()  # the first one may compile
    start = time.monotonic()
    run.trainer.score()
    evaluation = time.monotonic() - start
    num_steps, every = run.trainer.learner.num_steps, int(run.settings.evaluate_every)
    return per_step * num_steps + evaluation * -(-num_steps // every)


def dry_run(run: Run) -> str:
    """The resolved settings, sizes, number of steps, and a prediction of the time; `run` is not on disk."""
    learner = run.trainer.learner
    per_step = seconds_per_step(learner)
    minutes = estimated_seconds(run, per_step) / 60
    head = getattr(learner.model, "head", None)
    return "\n".join(
        [
            dump_yaml(run.recorded_settings),
            f"data        {run.dataset!r}",
            f"parameters  {count_parameters(learner.model):,}"
            + (f", of which in the head {count_parameters(head):,}" if head is not None else ""),
            f"steps       {learner.num_steps:,}",
            f"time        about {minutes:.1f} minutes ({1000 * per_step:.0f} ms per step, measured over {TIMED})",
            *(f"note        {notice}" for notice in run.notices),
        ]
    )
