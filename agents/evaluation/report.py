"""One HTML page that compares trained agents: tables and pictures inside, nothing to fetch."""

import base64
import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from qrl.agents.evaluation.evaluator import Cell, Evaluator, Subject
from qrl.agents.evaluation.pictures import distance_maps, estimates_picture, success_picture
from qrl.agents.evaluation.results import REFERENCES, Results
from qrl.agents.evaluation.summary import by_distance, summary
from qrl.agents.planning.rollouts import save_gif
from qrl.agents.runs.trained_run import TrainedRun
from qrl.common.files import atomic_write, read_text
from qrl.envs.card import card
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
    runs: Sequence[TrainedRun],
    evaluator: Evaluator,
    subjects: Sequence[Subject],
    results: Sequence[Results],
    goal: Cell | None = None,
) -> None:
    """`subjects`: the agents of the `runs`, in that order; `results`: theirs, then those of the references."""
    with TemporaryDirectory() as folder:
        page = _page(Path(folder), runs, evaluator, subjects, results, goal)
    with atomic_write(path) as file:
        file.write(page.encode())


def _page(
    folder: Path,
    runs: Sequence[TrainedRun],
    evaluator: Evaluator,
    subjects: Sequence[Subject],
    results: Sequence[Results],
    goal: Cell | None,
) -> str:
    dataset, truth = evaluator.dataset, evaluator.truth
    assert truth is not None
    layout = truth.layout
    notices = [*(notice for run in runs for notice in run.notices), *evaluator.notices]
    parts = [
        f"<h1>Planning in {_escape(layout.name)}</h1>",
        f"<p>{_tasks(evaluator)} An agent plans greedily: in each state it takes the action after which it expects the "
        f"fewest steps to the goal, for at most {evaluator.max_steps} steps.</p>",
        *(f"<p><b>Note:</b> {_escape(notice)}.</p>" for notice in notices),
        "<h2>Results</h2>",
        _table("", [each.name for each in results], summary(results)),
        _reading(),
        "<h2>Success by distance</h2>",
    ]
    success_picture(results, folder / "success.png")
    parts.append(_figure(folder / "success.png", "How often tasks succeed, by the true distance of start and goal."))
    start_state, goal_state = evaluator.task(None, goal)
    for run, subject, result in zip(runs, subjects, results, strict=False):
        parts.append(f"<h2>{_escape(run.name)}</h2>")
        parts.append(f"<p>Model {_escape(run.checkpoint.model_name)} after {run.checkpoint.step:,} training steps.</p>")
        distance_maps(subject, truth, goal_state, folder / "map.png")
        parts.append(_figure(folder / "map.png", _MAP))
        estimates_picture(subject, truth, dataset, folder / "estimates.png")
        parts.append(_figure(folder / "estimates.png", _ESTIMATES))
        (title, columns), *rows = by_distance(result)
        parts.append(_table(title, columns, rows))
        episode = evaluator.play(subject.policy, goal=goal)
        save_gif(episode, folder / "task.gif")
        end = "reached the goal" if episode.success else f"failed ({episode.cause})"
        exact = truth.distances[start_state, goal_state]
        task = f"of {exact:.0f} steps by the shortest way" if np.isfinite(exact) else "without any way"
        caption = f"A task {task}: {end} after {len(episode.actions)} steps."
        parts.append(_figure(folder / "task.gif", caption))
    coverage_picture(dataset, folder / "coverage.png")
    parts += [
        "<h2>The data</h2>",
        _definitions(card(dataset)),
        _figure(folder / "coverage.png", "What the data has seen of the world. Framed arrows are one-way doors."),
        "<h2>Settings</h2>",
        f"<p>Evaluated by the {evaluator.protocol} protocol with seed {evaluator.seed}. Of each run: all settings of "
        "training, then the versions that it was made with.</p>",
    ]
    for run in runs:
        settings = f"{read_text(run.folder.config)}\n{read_text(run.folder.facts)}"
        parts.append(f"<details><summary>{_escape(run.name)}</summary><pre>{_escape(settings)}</pre></details>")
    title = f"Planning in {_escape(layout.name)}"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n'
    )


_MAP = (
    "Left: the learned number of steps from every cell to the goal (star), with the greedy action of each cell. White "
    "arrows lead to the goal in the end, red ones never do; thick ones are a loop, a cross is a move into a wall or "
    "against a door. Middle: the truth. Right: their difference. Distances jump where a way is open one way only."
)
_ESTIMATES = (
    "Learned against true steps for every state, action and goal: a perfect model lies on the black line. Left: pairs "
    "that one trajectory of the data connects; right: pairs that must be put together from several."
)


def _tasks(evaluator: Evaluator) -> str:
    if evaluator.protocol == "paper":
        return f"{evaluator.episodes} sampled tasks, stepped in the real environment."
    return f"All {len(evaluator.starts):,} tasks: every start with every goal that can be reached from it."


def _reading() -> str:
    lines = {
        "success rate": "share of tasks that reach the goal; in brackets the 95 % interval, where tasks are sampled",
        "SPL": "success weighted by shortest / taken steps: 1 means every goal on a shortest way",
        "failed": "loop: walks in a circle; blocked: pushes against a wall or door for ever; cap: runs out of steps",
        "steps to the goal": "learned against true steps, over all states, actions and goals. Unseen pairs are those "
        "that no single trajectory connects",
        "triangle violations": "share of random triples with d(x,z) > d(x,y) + d(y,z), and the worst excess in steps: "
        "0 for a model that is a quasimetric by construction",
        "identity error": "mean distance of something to itself, which should be 0",
        "asymmetry": "mean difference between going there and coming back",
        **REFERENCES,
    }
    return f"<details open><summary>How to read the table</summary>{_definitions(lines)}</details>"


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[str, list[str]]]) -> str:
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
