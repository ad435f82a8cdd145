"""How long the observed transitions of a run are: `python docs/constraint.py RUN ...` prints a row per run.

A transition costs one step; those that the constrained objective leaves longer are the ones that most ways share.
"""

import sys

import numpy as np

from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.settings import GoalSettings
from qrl.agents.runs.run import Run
from qrl.agents.studies.report import table


def transition_row(path: str) -> list[str]:
    run = Run.open(path)
    agent, checkpoint = run.load_agent()
    dataset = run.dataset
    states, actions, following = GoalSampler(dataset, GoalSettings(), 0).distinct
    moved = states != following
    observations = dataset.observations
    lengths = agent.distance(observations[states], observations[following], actions).mean(-1)  # over actions there
    doors = np.isin(states, dataset.layout.doors) | np.isin(following, dataset.layout.doors)
    excess = np.sqrt(np.mean(np.maximum(lengths[moved] - 1, 0) ** 2))
    groups = [lengths[moved & doors], lengths[moved & ~doors]]
    cells = [f"{part.mean():.2f} (at most {part.max():.2f})" if len(part) else "-" for part in groups]
    return [run.name, f"{checkpoint.step:,}", *cells, f"{excess:.3f}"]


if __name__ == "__main__":
    titles = ["run", "steps", "transitions through doors", "other moves", "root mean squared excess"]
    print(table(titles, [transition_row(path) for path in sys.argv[1:]]))
