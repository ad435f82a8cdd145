"""One self-contained HTML page that compares trained agents with tables and pictures."""

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np

from qrl.agents.evaluation.curves import learning_curves
from qrl.agents.evaluation.evaluator import Evaluator, Subject
from qrl.agents.evaluation.metrics import ERRORS, TASKS
from qrl.agents.evaluation.pictures import distance_maps
from qrl.agents.evaluation.plots import estimates_picture, success_picture
from qrl.agents.evaluation.results import Results
from qrl.agents.evaluation.seeds import seed_groups, seed_rows
from qrl.agents.evaluation.single_task import GridCell, play_task, task_states
from qrl.agents.evaluation.style import Look, group_looks
from qrl.agents.evaluation.tables import metric_rows, references_among, rows_by_distance
from qrl.agents.evaluation.takeaway import takeaway
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.evaluation.validation_pictures import hindsight_picture, lengths_picture
from qrl.agents.pages import render
from qrl.agents.planning.animation import save_gif
from qrl.common.files import atomic_write, read_text
from qrl.envs.card import card
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.pictures import coverage_picture

Values = dict[str, Any]  # of the template


def write_report(
    path: str | Path,
    agents: Sequence[TrainedAgent],
    evaluator: Evaluator,
    subjects: Sequence[Subject],
    results: Sequence[Results],
    notices: Sequence[str] = (),
    goal: GridCell | None = None,
    explorer: str | Path | None = None,
) -> None:
    """`subjects`: of the `agents`, in that order; `results`: theirs, then those of the references.

    Without a world there are no maps and no tasks to show: the page then has tables, learning curves, and distances
    against hindsight on held-out trajectories.
    explorer: the page of explore-agents to link to.
    """
    truth = evaluator.truth
    groups = seed_groups(agents)
    link = None if explorer is None else quote(os.path.relpath(explorer, Path(path).absolute().parent))
    with TemporaryDirectory() as name:
        folder = Path(name)
        page = render(
            "report.html",
            title=f"Planning in {truth.world.name}" if truth is not None else "Learned distances",
            takeaway=takeaway(results, len(agents)),
            explorer=link,
            notices=notices,
            introduction=_introduction(evaluator, subjects),
            names=[result.name for result in results],
            rows=metric_rows(results),
            references=references_among(results),
            seeds=None
            if len(groups) == len(agents)
            else {"names": [group.name for group in groups], "rows": seed_rows(groups, results)},
            success=_success(folder, results, group_looks(groups)),
            curves=_picture(folder / "curves.png", _CURVES)
            if learning_curves(agents, groups, folder / "curves.png")
            else None,
            runs=[
                _run(folder, trained, link)
                | (
                    _hindsight(folder, subject)
                    if truth is None
                    else _planning(folder, evaluator, truth, subject, result, goal)
                )
                for trained, subject, result in zip(agents, subjects, results, strict=False)
            ],
            data=_data(folder, evaluator, subjects),
            settings=_settings(evaluator, agents),
        )
    with atomic_write(path) as file:
        file.write(page.encode())


def _introduction(evaluator: Evaluator, subjects: Sequence[Subject]) -> str:
    if evaluator.protocol is None:
        return _VALIDATION if any(subject.validation for subject in subjects) else ""
    tasks = f"All {len(evaluator.starts):,} tasks: every start with every goal that is reachable from it."
    if evaluator.protocol == "paper":
        tasks = f"{evaluator.episodes} sampled tasks, stepped in the environment."
    return (
        f"{tasks} An agent plans greedily: in each state it takes the action after which it expects the fewest steps "
        f"to the goal, for at most {evaluator.max_steps} steps."
    )


def _success(folder: Path, results: Sequence[Results], looks: Sequence[Look]) -> Values | None:
    if not any(result.success_by_distance for result in results):
        return None
    success_picture(results, folder / "success.png", looks)
    return _picture(folder / "success.png", _SUCCESS)


def _run(folder: Path, trained: TrainedAgent, explorer: str | None) -> Values:
    model, learner = trained.checkpoint.model_name, trained.run.settings.learner.name
    return {
        "name": trained.name,
        "description": f"Model {model}, trained by {learner} for {trained.checkpoint.step:,} steps.",
        "explorer": explorer and f"{explorer}#{urlencode({'run': trained.name})}",
        "pictures": [],
        "by_distance": [],
        "task": None,
    }


def _planning(
    folder: Path, evaluator: Evaluator, truth: GroundTruth, subject: Subject, result: Results, goal: GridCell | None
) -> Values:
    """The pictures and the table of one agent: maps in a world with cells, an episode in one with an environment."""
    start_state, goal_state = task_states(evaluator, goal=goal)
    pictures = []
    if subject.steps is not None:
        if truth.world.cells is not None:
            distance_maps(subject, truth, goal_state, folder / "map.png")
            pictures.append(_picture(folder / "map.png", _MAP))
        estimates_picture(subject, truth, evaluator.experience, folder / "estimates.png")
        pictures.append(_picture(folder / "estimates.png", _ESTIMATES))
    values: Values = {
        "pictures": pictures,
        "by_distance": rows_by_distance(result),
        "columns": {metric.title: metric.help for metric in (*TASKS, *ERRORS) if metric.by_distance},
    }
    if not truth.world.has_env:
        return values
    episode = play_task(evaluator, subject, goal=goal)
    save_gif(episode, folder / "task.gif")
    end = "reached the goal" if episode.success else f"failed ({episode.cause})"
    exact = truth.between(np.array([start_state]), np.array([goal_state]))[0]
    task = f"with a shortest path of {exact:.0f} steps" if np.isfinite(exact) else "with an unreachable goal"
    return values | {
        "task": _picture(folder / "task.gif", f"A task {task}: {end} after {len(episode.actions)} steps."),
    }


def _hindsight(folder: Path, subject: Subject) -> Values:
    """The picture of one agent without a world."""
    if subject.validation is None or subject.validation.hindsight is None:
        return {}
    hindsight_picture(subject.validation.hindsight, subject.name, folder / "hindsight.png")
    return {"pictures": [_picture(folder / "hindsight.png", _HINDSIGHT)]}


def _data(folder: Path, evaluator: Evaluator, subjects: Sequence[Subject]) -> Values:
    dataset, coverage, lengths = evaluator.dataset, None, None
    world = dataset.known_world
    if world is not None and world.cells is not None:
        coverage_picture(dataset, folder / "coverage.png")
        caption = "Coverage of the world by the data. Framed arrows are one-way doors."
        coverage = _picture(folder / "coverage.png", caption)
    held_out = [subject.validation.lengths for subject in subjects if subject.validation is not None]
    if world is None and held_out:
        lengths_picture(dataset.lengths, held_out[0], folder / "lengths.png")
        lengths = _picture(folder / "lengths.png", "Lengths of the trajectories: all, and those held out.")
    lines = card(dataset)
    summary = (
        f"{lines['episodes']} episodes with {lines['transitions']} transitions; states: {lines['states']}; "
        f"state-action pairs: {lines['state-action pairs']}."
    )
    return {"summary": summary, "card": lines, "coverage": coverage, "lengths": lengths}


def _settings(evaluator: Evaluator, agents: Sequence[TrainedAgent]) -> Values:
    protocol = "" if evaluator.protocol is None else f"Evaluated by the {evaluator.protocol} protocol, "
    files = {
        trained.name: "\n".join(
            read_text(path) for path in (trained.run.config, trained.run.record.path) if path.is_file()
        )
        for trained in agents
    }
    introduction = f"{protocol}seed {evaluator.seed}. For each run: all settings of training, then where it comes from."
    return {"introduction": introduction, "files": files}


_SUCCESS = (
    "Success rate by the exact distance from start to goal. Bars are 95 % Wilson intervals of the agents' rates, given "
    "the number of tasks. Runs that differ only by seed share a colour."
)
_CURVES = (
    "What each run scored while it was trained: its loss; where exact distances are known, its planning and its "
    "distances; where trajectories are held out, its validation. Runs that differ only by seed share a colour."
)
_VALIDATION = (
    "Each agent is scored on trajectories that it was not trained "
    "on: by the loss of its learner, which compares between runs of the same learner only, and by hindsight. A "
    "trajectory that is at x_i and at x_j later shows that j - i steps suffice, so that in a deterministic world no "
    "distance d(x_i, x_j) should be larger. It may well be smaller, since trajectories wander: distances that are too "
    "short are not detected, and distances of 0 would be consistent. In a stochastic world a trajectory may have been "
    "lucky, and j - i is no bound."
)
_HINDSIGHT = (
    "Learned distance against the steps that a held-out trajectory took, for pairs of its states and actions. In a "
    "deterministic world no pair should lie above the black line; far below it are pairs between which the trajectory "
    "took a detour, or whose distance is underestimated."
)
_MAP = (
    "Left: learned steps from every cell to the goal (star), with the greedy action of each cell. White arrows lead to "
    "the goal, red ones never do; thick arrows form a loop, a cross is a move into a wall or against a door. Middle: "
    "exact steps. Right: their difference. The arrow of a colour scale stands for values "
    "beyond it. Distances jump at one-way doors."
)
_ESTIMATES = (
    "Learned against exact steps for every state, action and goal: a perfect model lies on the black line. Left: pairs "
    "that a single trajectory of the data connects; right: pairs that must be stitched together from several."
)


def _picture(path: Path, caption: str) -> Values:
    content = base64.b64encode(path.read_bytes()).decode()
    return {"source": f"data:image/{path.suffix.removeprefix('.')};base64,{content}", "caption": caption}
