"""What the constrained objective has learned: `python docs/constraint.py RUN ...` prints two tables, a row per run.

Every observed transition costs one step, whatever action follows it: lengths are the longest over these actions.
"""

import sys

import numpy as np
from numpy.typing import NDArray

from qrl.agents.learners.goal_sampler import GoalSampler
from qrl.agents.learners.settings import GoalSettings
from qrl.agents.planning.empirical_graph import empirical_steps
from qrl.agents.planning.references import oracle_steps
from qrl.agents.runs.run import Run
from qrl.agents.studies.report import table
from qrl.envs.ground_truth import ground_truth

RANGES = ((1, 5), (6, 10), (11, 20), (21, 30), (31, 50))  # of exact distances


def rows_of(path: str) -> tuple[list[str], list[str]]:
    run = Run.open(path)
    agent, checkpoint = run.load_agent()
    dataset, truth = run.dataset, ground_truth(run.dataset.layout)
    name = [run.name, f"{checkpoint.step:,}"]
    states, actions, following = GoalSampler(dataset, GoalSettings(), 0).distinct
    observations, doors, blocked = dataset.observations, truth.layout.doors, states == following
    lengths = agent.distance(observations[states], observations[following], actions).max(-1)
    through_door = (np.isin(states, doors) | np.isin(following, doors)) & ~blocked
    groups = (through_door, ~through_door & ~blocked, blocked)
    transitions = [_length(lengths[group]) for group in groups]

    exact = oracle_steps(truth) + 1  # of the pair: with the step of its action
    # Where the data leads nowhere, nothing holds a distance down.
    known = np.isfinite(empirical_steps(dataset)) & ~np.eye(len(exact), dtype=bool)[..., None]
    ratio = (agent.all_steps_to_goal(observations) + 1) / exact
    parts = [ratio[known & (low <= exact) & (exact <= high)] for low, high in RANGES]
    ratios = [f"{part.mean():.2f}" if len(part) else "-" for part in parts]
    return name + transitions, name + ratios


def _length(lengths: NDArray[np.float32]) -> str:
    return f"{lengths.mean():.2f} (at most {lengths.max():.2f})" if len(lengths) else "-"


if __name__ == "__main__":
    first, second = zip(*map(rows_of, sys.argv[1:]), strict=True)
    print(table(["run", "steps", "transitions through doors", "other moves", "blocked moves"], list(first)), end="\n\n")
    titles = [f"exact {low} to {high}" for low, high in RANGES]
    print("Mean of learned / exact distance, where the data leads to the goal:\n")
    print(table(["run", "steps", *titles], list(second)))
