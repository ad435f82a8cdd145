"""What a training run would be, without making it."""

import time

from qrl.agents.runs.training_run import Training
from qrl.catalog import count_parameters
from qrl.common.settings import dump_yaml

WARM_UP, TIMED = 3, 10


def dry_run(training: Training) -> str:
    """The resolved settings, sizes, number of steps, and minutes predicted from a few timed steps."""
    settings, learner = training.settings, training.learner
    for _ in range(WARM_UP):
        learner.update(training.sampler, with_metrics=False)
    begin = time.monotonic()
    for _ in range(TIMED):
        learner.update(training.sampler, with_metrics=False)
    per_step = (time.monotonic() - begin) / TIMED
    training.evaluate()  # the first one may compile
    begin = time.monotonic()
    training.evaluate()
    evaluation = (time.monotonic() - begin) * -(-learner.num_steps // settings.evaluate_every)
    minutes = (per_step * learner.num_steps + evaluation) / 60
    head = getattr(learner.model, "head", None)
    return "\n".join(
        [
            dump_yaml(settings.model_dump()),
            f"data        {training.dataset!r}",
            f"parameters  {count_parameters(learner.model):,}"
            + (f", of which in the head {count_parameters(head):,}" if head is not None else ""),
            f"steps       {learner.num_steps:,}",
            f"time        about {minutes:.1f} minutes ({1000 * per_step:.0f} ms a step, measured over {TIMED})",
            *(f"note        {notice}" for notice in training.notices),
        ]
    )
