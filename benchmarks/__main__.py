"""Run all benchmarks, print them and write docs/performance.md: a few minutes on an otherwise idle machine."""

import os
import platform
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import collection, heads, learners, scaling, sweep, training_step
from benchmarks.measure import matrix_rate
from qrl.common.files import atomic_write

DOCS = Path(__file__).parents[1] / "docs"


def _machine() -> str:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    return (
        f"Machine: {model}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"{torch.backends.cpu.get_cpu_capability()}; matrix products at {matrix_rate():.0f} GFLOP/s (float32)."
    )


def main() -> None:
    sections = [
        "# Performance",
        "Written by `make bench`. Times are medians of runs that alternate in one process; ratios are medians over "
        "adjacent runs and the numbers to compare, because machines differ and are noisy. The baselines are in "
        "`benchmarks/` and `tests/agents/learners/naive.py`.",
        _machine(),
    ]
    print("\n\n".join(sections), flush=True)
    parts: list[Callable[[], str]] = [
        training_step.main,
        learners.main,
        heads.main,
        collection.main,
        sweep.main,
        lambda: scaling.main(DOCS / "performance.png"),
    ]
    for part in parts:
        sections.append(part())
        print(f"\n{sections[-1]}", flush=True)
    with atomic_write(DOCS / "performance.md") as file:
        file.write(("\n\n".join(sections) + "\n").encode())


if __name__ == "__main__":
    main()
