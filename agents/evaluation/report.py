"""One self-contained HTML page that compares trained agents with tables and pictures."""

import base64
import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from qrl.agents.evaluation.evaluator import Evaluator, GridCell, Subject
from qrl.agents.evaluation.metrics import METRICS
from qrl.agents.evaluation.pictures import distance_maps, estimates_picture, success_picture
from qrl.agents.evaluation.results import REFERENCES, Results
from qrl.agents.evaluation.tables import TextRow, results_rows, rows_by_distance
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.planning.rollouts import save_gif
from qrl.common.files import atomic_write, read_text
from qrl.envs.card import card
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.pictures import coverage_picture

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1150px; margin: 2em auto; padding: 0 1em }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2em; border-bottom: 1px solid #ccc }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } .wide { overflow-x: auto }
td, th { padding: .2em .8em; text-align: right; white-space: pre } td:first-child { text-align: left }
tr:nth-child(even) { background: #f4f4f4 } th { border-bottom: 2px solid #888 }
th:first-child { text-align: left } dl.card { display: grid; grid-template-columns: max-content 1fr; gap: 0 1.2em }
dt { color: #666 } dd { margin: 0; overflow-wrap: anywhere } img { max-width: 100% }
figure { margin: 1.2em 0 } figcaption { color: #555 } pre { background: #f4f4f4; padding: 1em; overflow-x: auto }
"""


def write_report(
    path: str | Path,
    agents: Sequence[TrainedAgent],
    evaluator: Evaluator,
    subjects: Sequence[Subject],
    results: Sequence[Results],
    notices: Sequence[str] = (),
    goal: GridCell | None = None,
) -> None:
    """`subjects`: of the `agents`, in that order; `results`: theirs, then those of the references.

    Without a world there are no maps and no tasks to show: the page then has the tables only.
    """
    truth = evaluator.truth
    title = f"Planning in {truth.world.name}" if truth is not None else "Learned distances"
    with TemporaryDirectory() as folder:
        parts = [
            f"<h1>{_escape(title)}</h1>",
            *_introduction(evaluator, notices),
            "<h2>Results</h2>",
            _table("", [result.name for result in results], results_rows(results)),
            _glossary(results),
            *_success(Path(folder), results),
        ]
        for trained, subject, result in zip(agents, subjects, results, strict=False):
            model, learner = trained.checkpoint.model_name, trained.run.settings.learner.name
            made = f"Model {model}, trained by {learner} for {trained.checkpoint.step:,} steps."
            parts += [f"<h2>{_escape(trained.name)}</h2>", f"<p>{_escape(made)}</p>"]
            if truth is not None:
                parts += _agent(Path(folder), evaluator, truth, subject, result, goal)
        parts += [*_data(Path(folder), evaluator), *_settings(evaluator, agents)]
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"<head>{meta}<title>{_escape(title)}</title><style>{_STYLE}</style></head>"
    body = "\n".join(parts)
    page = f'<!doctype html>\n<html lang="en">{head}\n<body>\n{body}\n</body></html>\n'
    with atomic_write(path) as file:
        file.write(page.encode())


def _introduction(evaluator: Evaluator, notices: Sequence[str]) -> list[str]:
    parts = [f"<p><b>Note:</b> {_escape(notice)}.</p>" for notice in notices]
    if evaluator.protocol is None:
        return parts
    tasks = f"All {len(evaluator.starts):,} tasks: every start with every goal that is reachable from it."
    if evaluator.protocol == "paper":
        tasks = f"{evaluator.episodes} sampled tasks, stepped in the environment."
    greedy = (
        "An agent plans greedily: in each state it takes the action after which it expects the fewest steps to the "
        f"goal, for at most {evaluator.max_steps} steps."
    )
    return [f"<p>{tasks} {greedy}</p>", *parts]


def _success(folder: Path, results: Sequence[Results]) -> list[str]:
    if not any(result.success_by_distance for result in results):
        return []
    success_picture(results, folder / "success.png")
    caption = "Success rate by the exact distance from start to goal."
    return ["<h2>Success by distance</h2>", _figure(folder / "success.png", caption)]


def _agent(
    folder: Path, evaluator: Evaluator, truth: GroundTruth, subject: Subject, result: Results, goal: GridCell | None
) -> list[str]:
    """The pictures of one agent in a world: maps where it has cells, an episode where it has an environment."""
    start_state, goal_state = evaluator.task(None, goal)
    parts = []
    if subject.steps is not None:
        if truth.world.cells is not None:
            distance_maps(subject, truth, goal_state, folder / "map.png")
            parts.append(_figure(folder / "map.png", _MAP))
        estimates_picture(subject, truth, evaluator.dataset, folder / "estimates.png")
        parts.append(_figure(folder / "estimates.png", _ESTIMATES))
    rows = rows_by_distance(result)
    if rows:
        (title, columns), *body = rows
        parts.append(_table(title, columns, body))
    if not truth.world.has_env:
        return parts
    episode = evaluator.play(subject.policy, goal=goal)
    save_gif(episode, folder / "task.gif")
    end = "reached the goal" if episode.success else f"failed ({episode.cause})"
    exact = truth.between(np.array([start_state]), np.array([goal_state]))[0]
    task = f"with a shortest path of {exact:.0f} steps" if np.isfinite(exact) else "with an unreachable goal"
    return [*parts, _figure(folder / "task.gif", f"A task {task}: {end} after {len(episode.actions)} steps.")]


def _data(folder: Path, evaluator: Evaluator) -> list[str]:
    parts = ["<h2>The data</h2>", _definitions(card(evaluator.dataset))]
    if evaluator.truth is not None and evaluator.truth.world.cells is not None:
        coverage_picture(evaluator.dataset, folder / "coverage.png")
        caption = "Coverage of the world by the data. Framed arrows are one-way doors."
        parts.append(_figure(folder / "coverage.png", caption))
    return parts


def _settings(evaluator: Evaluator, agents: Sequence[TrainedAgent]) -> list[str]:
    protocol = "" if evaluator.protocol is None else f"Evaluated by the {evaluator.protocol} protocol, "
    parts = [
        "<h2>Settings</h2>",
        f"<p>{protocol}seed {evaluator.seed}. For each run: all settings of training, then where it comes from.</p>",
    ]
    for trained in agents:
        files = (trained.run.config, trained.run.record.path)
        settings = "\n".join(read_text(path) for path in files if path.is_file())
        parts.append(f"<details><summary>{_escape(trained.name)}</summary><pre>{_escape(settings)}</pre></details>")
    return parts


_MAP = (
    "Left: learned steps from every cell to the goal (star), with the greedy action of each cell. White arrows lead to "
    "the goal, red ones never do; thick arrows form a loop, a cross is a move into a wall or against a door. Middle: "
    "exact steps. Right: their difference. Distances jump at one-way doors."
)
_ESTIMATES = (
    "Learned against exact steps for every state, action and goal: a perfect model lies on the black line. Left: pairs "
    "that a single trajectory of the data connects; right: pairs that must be stitched together from several."
)


def _glossary(results: Sequence[Results]) -> str:
    """The meaning of every row that is shown, and of the references."""
    lines = {
        metric.title.strip(): metric.help
        for metric in METRICS
        if metric.title and any(result[metric.key] is not None for result in results)
    }
    lines |= {name: text for name, text in REFERENCES.items() if any(result.name == name for result in results)}
    return f"<details><summary>How to read the table</summary>{_definitions(lines)}</details>"


def _table(title: str, columns: Sequence[str], rows: Sequence[TextRow]) -> str:
    head = f"<th>{_escape(title)}</th>" + "".join(f"<th>{_escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{_cells([first, *values])}</tr>" for first, values in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _cells(values: Iterable[str]) -> str:
    return "".join(f"<td>{_escape(value)}</td>" for value in values)


def _definitions(lines: dict[str, str]) -> str:
    items = "".join(f"<dt>{_escape(name)}</dt><dd>{_escape(text)}</dd>" for name, text in lines.items())
    return f'<dl class="card">{items}</dl>'


def _figure(path: Path, caption: str) -> str:
    content = base64.b64encode(path.read_bytes()).decode()
    kind = path.suffix.removeprefix(".")
    image = f'<img src="data:image/{kind};base64,{content}" alt="{_escape(caption)}">'
    return f"<figure>{image}<figcaption>{_escape(caption)}</figcaption></figure>"


def _escape(text: str) -> str:
    return html.escape(text)
