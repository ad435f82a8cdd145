"""Tables and pictures of worlds.md, from the CSVs in docs/worlds; docs/studies.py puts the tables into the page.

doors.csv is made by `python -m docs.unseen_doors`, results.csv by `sweep-agents worlds`.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qrl.agents.evaluation.style import COLORS, REFERENCE_STYLES, looks
from qrl.agents.studies.findings import Findings, GroupSummary
from qrl.agents.studies.folder import StudyFolder
from qrl.agents.studies.table import matched, read_rows
from qrl.common.figures import FRACTION_LIMITS, save_figure, tidy
from qrl.common.files import read_csv, write_csv

FOLDER = Path(__file__).parent / "worlds"
REFERENCES = ("oracle", "random", "empirical-graph")
Row = dict[str, str]
Table = list[list[str]]

# Unseen doors


class Doors:
    """The rows of doors.csv."""

    def __init__(self, path: Path) -> None:
        self.rows: list[Row] = [dict(row) for row in read_csv(path).rows]
        self.learners = list(dict.fromkeys(row["learner"] for row in self.rows))
        self.sizes = sorted({int(row["configurations"]) for row in self.rows})

    def of(self, **values: object) -> list[Row]:
        return [row for row in self.rows if all(row[key] == str(value) for key, value in values.items())]

    def by_seed(self, rows: Iterable[Row], count: str = "success") -> list[float]:
        """The fraction of tasks that end so, for each seed."""
        seeds: dict[str, list[Row]] = {}
        for row in rows:
            seeds.setdefault(row["seed"], []).append(row)
        totals = [(sum(int(row[key]) for row in part) for key in (count, "tasks")) for part in seeds.values()]
        return [ended / tasks for ended, tasks in totals]

    def curve(self, planner: str, split: str, learner: str) -> dict[int, list[float]]:
        """By number of configurations, the success of each seed."""
        found = {
            size: self.by_seed(self.of(planner=planner, split=split, learner=learner, configurations=size))
            for size in self.sizes
        }
        return {size: values for size, values in found.items() if values}


def doors_table(doors: Doors) -> Table:
    """Success by learner and number of configurations, beside the references on the same tasks."""
    titles = ["learner", "K", "held-out", "seeds", "training", "at a door", "at a wall", "loop", "seconds"]
    rows = []
    for learner in doors.learners:
        for size, held_out in doors.curve("learned", "test", learner).items():
            known = doors.curve("learned", "train", learner)[size]
            runs = doors.of(planner="learned", split="test", learner=learner, configurations=size)
            blocked, door, loop = (np.mean(doors.by_seed(runs, end)) for end in ("blocked", "door", "loop"))
            values = [f"{value:.3f}" for value in (np.mean(known), door, blocked - door, loop)]
            seconds = np.mean([int(row["seconds"]) for row in runs])
            mean = f"**{np.mean(held_out):.3f}**"
            rows.append([learner, str(size), mean, str(len(held_out)), *values, f"{seconds:.0f}"])
    return [titles, *rows]


def references_table(doors: Doors) -> Table:
    learner = doors.learners[0]
    titles = ["K", *(f"{name}, {split}" for name in REFERENCES for split in ("held-out", "training"))]
    curves = [doors.curve(name, split, learner) for name in REFERENCES for split in ("test", "train")]
    return [titles, *([str(size), *(f"{np.mean(curve[size]):.3f}" for curve in curves)] for size in doors.sizes)]


def sides_table(doors: Doors) -> Table:
    """Success in held-out configurations by whether the doors of the goal's side are those of a training one."""
    learner = doors.learners[0]
    titles = ["K", "tasks of a side seen", "success", "tasks of a side not seen", "success"]
    rows = []
    for size in doors.sizes:
        cells = []
        for seen in (1, 0):
            tasks = doors.of(planner="learned", split="test", learner=learner, configurations=size, side_seen=seen)
            count = sum(int(row["tasks"]) for row in tasks)
            success = np.mean(doors.by_seed(tasks)) if count else None
            cells += [f"{count:,}", "-" if success is None else f"{success:.3f}"]
        rows.append([str(size), *cells])
    return [titles, *rows]


def distances_table(doors: Doors) -> Table:
    """Success in held-out configurations by exact distance."""
    learner = doors.learners[0]
    held_out = doors.of(planner="learned", split="test", learner=learner)
    lows = sorted({int(row["distance"]) for row in held_out})
    rows = []
    for size in doors.sizes:
        own = [row for row in held_out if row["configurations"] == str(size)]
        parts = [[row for row in own if row["distance"] == str(low)] for low in lows]
        rows.append([str(size), *(f"{np.mean(doors.by_seed(part)):.3f}" if part else "-" for part in parts)])
    return [["K", *(f"from {low} steps" for low in lows)], *rows]


def draw_doors(doors: Doors, path: Path) -> None:
    figure = Figure(figsize=(10, 4), layout="constrained")
    curves, sides = figure.subplots(1, 2, sharey=True)
    for number, learner in enumerate(doors.learners):
        for split, style in (("test", "-"), ("train", ":")):
            label = f"{learner}, {'held-out' if split == 'test' else 'training'} configurations"
            _draw_curve(
                curves, doors.curve("learned", split, learner), label, color=COLORS[number], ls=style, marker="o"
            )
    first = doors.learners[0]
    graph = REFERENCE_STYLES["empirical-graph"]
    _draw_curve(curves, doors.curve("empirical-graph", "test", first), "empirical graph, held-out", **graph)
    _draw_curve(curves, doors.curve("random", "test", first), "random", **REFERENCE_STYLES["random"])
    curves.set_xscale("log")
    curves.set_xticks(doors.sizes, map(str, doors.sizes))
    curves.minorticks_off()
    curves.set_xlabel("K, configurations in the data")
    curves.set_ylabel("success rate")
    curves.set_ylim(*FRACTION_LIMITS)
    curves.legend(fontsize=7.5)
    width = 0.38
    for offset, seen in ((-width / 2, 1), (width / 2, 0)):
        for place, size in enumerate(doors.sizes):
            tasks = doors.of(planner="learned", split="test", learner=first, configurations=size, side_seen=seen)
            values = doors.by_seed(tasks)
            label = f"doors of the goal's side {'seen in' if seen else 'not in'} the data" if place == 0 else None
            if values:
                sides.bar(place + offset, np.mean(values), width, color=COLORS[0] if seen else COLORS[2], label=label)
                sides.plot([place + offset] * len(values), values, "k.", ms=4)
    sides.set_xticks(range(len(doors.sizes)), map(str, doors.sizes))
    sides.set_xlabel("K, configurations in the data")
    sides.set_title(f"{first}, held-out configurations", fontsize=10)
    sides.legend(fontsize=7.5, loc="upper right", framealpha=1)
    for ax in (curves, sides):
        tidy(ax)
    save_figure(figure, path)


def _draw_curve(ax: Axes, curve: dict[int, list[float]], label: str, **style: object) -> None:
    sizes = list(curve)
    ax.plot(sizes, [np.mean(curve[size]) for size in sizes], label=label, **style)  # type: ignore[arg-type]


# Worlds of every kind


def worlds_table(findings: Findings) -> Table:
    """Success by world: the mean over the seeds of every model and reference."""
    families = [*findings.study.settings.families, *REFERENCES]
    success = _success(findings)
    rows = [[world, *(_cell(success.get((world, family))) for family in families)] for world in _worlds(findings)]
    return [["world", *families], *rows]


def _worlds(findings: Findings) -> list[str]:
    return list(findings.study.settings.worlds)


def _success(findings: Findings) -> dict[tuple[str, str], GroupSummary]:
    return {(group.condition.world, group.family): group for group in findings.summaries() if group.complete}


def _cell(group: GroupSummary | None) -> str:
    return "-" if group is None else f"{group.means['success_rate']:.3f}"


def draw_worlds(findings: Findings, path: Path) -> None:
    """A group of bars per world: learned models; lines: references."""
    worlds, families, success = _worlds(findings), list(findings.study.settings.families), _success(findings)
    figure = Figure(figsize=(10, 4), layout="constrained")
    ax = figure.subplots()
    width = 0.8 / len(families)
    styles = looks({family: findings.study.settings.families[family].model or family for family in families})
    for place, world in enumerate(worlds):
        for number, family in enumerate(families):
            group = success.get((world, family))
            if group is not None:
                x = place - 0.4 + (number + 0.5) * width
                label = family if place == 0 else None
                ax.bar(x, group.means["success_rate"], 0.92 * width, color=styles[family].color, label=label)
                if group.interval is not None:
                    ax.plot([x, x], group.interval, color="k", lw=1)
        for name in REFERENCES:
            group = success.get((world, name))
            if group is not None:
                style = {key: REFERENCE_STYLES[name][key] for key in ("lw", "ls", "color")}
                value = group.means["success_rate"]
                ax.plot([place - 0.45, place + 0.45], [value, value], label=name if place == 0 else None, **style)
    ax.set_xticks(range(len(worlds)), worlds)
    ax.set_ylabel("success rate, all tasks")
    ax.set_ylim(0, 1.03)
    ax.legend(ncols=6, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    tidy(ax)
    save_figure(figure, path)


def main() -> None:
    doors = Doors(FOLDER / "doors.csv")
    tables: dict[str, Callable[[Doors], Table]] = {
        "doors-learners": doors_table,
        "doors-references": references_table,
        "doors-sides": sides_table,
        "doors-distances": distances_table,
    }
    for name, table in tables.items():
        write_csv(FOLDER / f"{name}.csv", table(doors))
    draw_doors(doors, FOLDER / "doors.png")
    folder = StudyFolder(FOLDER)
    study = folder.read_study()
    findings = Findings(study, matched(study, read_rows(folder.results)))
    write_csv(FOLDER / "success.csv", worlds_table(findings))
    draw_worlds(findings, FOLDER / "success.png")


if __name__ == "__main__":
    main()
