"""Scaling of the training step, of collection and of exhaustive evaluation; memory and startup time of a run."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.heads import LATENT_SIZE, STATE_ACTIONS
from benchmarks.measure import milliseconds, table
from benchmarks.training_step import learner_step, necessary_operations, paper_trainer
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.planning.agent import Agent
from qrl.common.figures import save_figure
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import MAX_TABLE, ground_truth
from qrl.envs.layout import Layout

SIDES_COLLECTED = (20, 50, 100)
SIDES_EVALUATED = (10, 20, 40)


def open_layout(side: int) -> Layout:
    """A square room with a start in every fifth cell and goals in all others."""
    inner = side - 2
    rows = ["".join("S" if (x + 2 * y) % 5 == 0 else "G" for x in range(inner)) for y in range(inner)]
    wall = "#" * side
    return Layout("\n".join([wall, *(f"#{row}#" for row in rows), wall]), f"open {side}x{side}")


def _data(layout: Layout, trajectories: int) -> Dataset:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(layout.text)
        file.flush()
        return collect(CollectorSettings(layout=file.name, trajectories=trajectories))


def main(picture: Path) -> str:
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    axes = figure.subplots(1, 3)
    sections = [_steps(axes[0]), _collection(axes[1]), _evaluation(axes[2]), _memory(), _start()]
    for ax in axes:
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.margins(0.25)
        ax.grid(alpha=0.3)
        ax.legend(loc="upper left", fontsize=8)
    save_figure(figure, picture)
    return "\n\n".join([*sections[:3], f"![Scaling]({picture.name})", *sections[3:]])


def _draw(ax: Any, work: Sequence[float], times: dict[str, list[float]]) -> None:
    """Times against the work, each with a line proportional to the work."""
    for (title, values), color in zip(times.items(), ("C0", "C1"), strict=False):
        ax.loglog(work, values, "o", color=color, label=title)
        ends = (min(work), max(work))
        line = [values[-1] * end / work[-1] for end in ends]
        ax.loglog(ends, line, ":", color=color, lw=1, label="proportional to the work")


def _steps(ax: Any) -> str:
    rows, work, times = [], [], []
    small, large = collect(CollectorSettings(trajectories=300)), _data(open_layout(40), 300)
    cases: list[tuple[str, Dataset, dict[str, Any]]] = [
        ("batch 256", small, {"learner__batch_size": 256}),
        ("batch 1,024", small, {}),
        ("batch 4,096", small, {"learner__batch_size": 4096}),
        ("width 512", small, {"model__width": 512}),
        ("width 1,024", small, {"model__width": 1024}),
        (f"{len(large.observations):,} states", large, {}),
    ]
    for title, dataset, changes in cases:
        trainer = paper_trainer("iqe-maxmean", False, dataset, **changes)
        spent = milliseconds({"step": learner_step(trainer)}, rounds=7)["step"]
        needed = necessary_operations(trainer) / 1e9
        rows.append([title, f"{needed:.1f}", f"{spent:.0f}", f"{needed / spent * 1e3:.0f}"])
        work.append(needed)
        times.append(spent)
        ax.annotate(title, (needed, spent), textcoords="offset points", xytext=(-6, 2), ha="right", fontsize=7)
    _draw(ax, work, {"per step": times})
    ax.set(xlabel="necessary GFLOP per step", ylabel="ms", title="training step", xlim=(min(work) / 5, max(work) * 2))
    note = (
        "iqe-maxmean, eager; by default width 2048, batch 1,024 and the 241 states of six-rooms. The encoder's work "
        "does not grow with the batch, because each distinct state is encoded once; the head sees every pair. The "
        "bottleneck of narrow networks is the head, and Adam and the target's average, which pass over all weights."
    )
    return table("Scaling of the training step", ["case", "necessary GFLOP", "ms", "GFLOP/s"], rows, note)


def _collection(ax: Any) -> str:
    rows, work, times = [], [], {"all distances": list[float]()}
    for side in SIDES_COLLECTED:
        layout = open_layout(side)
        truth = ground_truth(layout)
        begin = time.perf_counter()
        _ = truth.distances  # computed now, and shared with the collection
        truth_seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        dataset = _data(layout, 10_000)
        seconds = time.perf_counter() - begin
        rate = dataset.num_transitions / seconds
        rows.append([f"{side}x{side}", f"{len(layout.cells):,}", f"{truth_seconds:.2f}", f"{rate:,.0f}"])
        work.append(len(layout.cells) ** 2)
        times["all distances"].append(truth_seconds)
    _draw(ax, work, times)
    ax.set(xlabel="pairs of states", ylabel="seconds", title="exact distances of a layout")
    note = (
        "All distances are computed once per layout; the time grows slightly faster than their number, the square of "
        "the states. A step of the collection then looks up four of them. Layouts of more than "
        f"{MAX_TABLE:,} states are tabulated only if all distances are asked for, as here."
    )
    return table("Scaling of collection", ["open room", "states", "all distances, s", "steps per second"], rows, note)


def _evaluation(ax: Any) -> str:
    rows, work, times = [], [], {"table of steps": list[float](), "scoring": list[float]()}
    for side in SIDES_EVALUATED:
        dataset = _data(open_layout(side), 100)
        trainer = paper_trainer("iqe-maxmean", False, dataset, model__width=256)
        evaluator = Evaluator(dataset)
        begin = time.perf_counter()
        steps = Agent(trainer.learner.model, trainer.scaling).all_steps_to_goal(dataset.observations)
        table_seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        results = evaluator.score(evaluator.reference("oracle"))
        seconds = time.perf_counter() - begin
        pairs = steps.shape[0] ** 2
        rows.append(
            [f"{side}x{side}", f"{pairs:,}", f"{results['tasks']:,.0f}", f"{table_seconds:.1f}", f"{seconds:.1f}"]
        )
        work.append(pairs)
        times["table of steps"].append(table_seconds)
        times["scoring"].append(seconds)
    _draw(ax, work, times)
    ax.set(xlabel="pairs of states", ylabel="seconds", title="exhaustive evaluation")
    columns = ["open room", "pairs of states", "tasks", "table of steps, s", "scoring, s"]
    note = (
        "Table of steps: iqe-maxmean (width 256, eager) between all states. Scoring: the oracle, which walks all tasks "
        "and all pairs and computes all errors. Both grow with the pairs of states; walks also get longer."
    )
    return table("Scaling of the exhaustive evaluation", columns, rows, note)


_RUN = """
from benchmarks.measure import peak_memory
from benchmarks.training_step import paper_trainer
trainer = paper_trainer("iqe-maxmean", {compiled})
for _ in range({steps}):
    trainer.learner.step(log=False)
trainer.score() if {steps} > 1 else None
print(peak_memory())
"""

_ALL_PAIRS = """
from benchmarks.heads import LATENT_SIZE, all_pairs
from benchmarks.measure import peak_memory
from qrl.heads import IQE
head = IQE(LATENT_SIZE)
head.accelerate_() if {compiled} else None
all_pairs(head)()
print(peak_memory())
"""


def _python(program: str, cache: str | None = None) -> tuple[float, str]:
    """Seconds and output of a new interpreter; `cache`: folder of compiled kernels."""
    environment = dict(os.environ) if cache is None else {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
    begin = time.perf_counter()
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - begin, run.stdout


def _memory() -> str:
    training = f"training iqe-maxmean, width 2048, {CollectorSettings().trajectories:,} trajectories"
    pairs = f"IQE of all pairs of {STATE_ACTIONS} latents"
    rows = [
        [f"{title}, {form}", f"{float(_python(program.format(compiled=form == 'compiled', steps=20))[1]):.2f}"]
        for title, program in ((training, _RUN), (pairs, _ALL_PAIRS))
        for form in ("eager", "compiled")
    ]
    whole = STATE_ACTIONS**2 * LATENT_SIZE * 4 / 2**30
    note = f"Of the whole process. The latents of all pairs at once would take twice {whole:.1f} GiB."
    return table("Memory", ["", "peak resident GiB"], rows, note)


def _start() -> str:
    help_seconds, _ = _python(
        "from qrl.scripts.train_agent import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    )
    rows = [["train-agent --help", f"{help_seconds:.1f}"]]
    rows.append(["to the first step, eager", f"{_python(_RUN.format(compiled=False, steps=1))[0]:.1f}"])
    with tempfile.TemporaryDirectory() as cache:
        for title in ("to the first step, compiled, nothing cached", "to the first step, compiled, cached"):
            rows.append([title, f"{_python(_RUN.format(compiled=True, steps=1), cache)[0]:.1f}"])
    note = "From the start of the interpreter, including 1,000 collected trajectories. Kernels are cached on disk."
    return table("Startup", ["", "seconds"], rows, note)
