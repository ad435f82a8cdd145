"""Times as medians of alternating runs, so that a noisy machine is noisy for all alike; memory; tables."""

import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

WARM_UP_SECONDS = 0.2
TURN_SECONDS = 0.01


def milliseconds(functions: Mapping[str, Callable[[], Any]], rounds: int = 15) -> dict[str, float]:
    """The median time of each function; they take turns. What is short is called several times in a turn."""
    calls = {}
    for name, function in functions.items():
        function()  # compiles, if anything does
        begin, count = time.perf_counter(), 0
        while count == 0 or time.perf_counter() - begin < WARM_UP_SECONDS:
            function()
            count += 1
        calls[name] = max(1, round(TURN_SECONDS * count / (time.perf_counter() - begin)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.perf_counter()
            for _ in range(calls[name]):
                function()
            times[name].append(1e3 * (time.perf_counter() - begin) / calls[name])
    return {name: statistics.median(values) for name, values in times.items()}


def matrix_rate(size: int = 2048) -> float:
    """GFLOP/s of a float32 matrix product: what the machine can do."""
    a, b, out = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
    return 2 * size**3 / milliseconds({"product": lambda: torch.mm(a, b, out=out)}, rounds=9)["product"] / 1e6


def peak_memory() -> float:
    """The most memory that this process has had, in GiB."""
    # Not getrusage, which also counts the process that started this one.
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 2**20


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A section of Markdown."""
    lines = [f"## {title}", "", f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, *(["", note] if note else [])])
