"""Times as medians of alternating runs, so that a noisy machine is noisy for all alike; memory; tables."""

import ctypes
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

WARM_UP_SECONDS = 0.2
TURN_SECONDS = 0.01
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's numbers for them


class Times(dict[str, float]):
    """The median time of each function."""

    def __init__(self, rounds: Mapping[str, Sequence[float]]) -> None:
        super().__init__({name: statistics.median(times) for name, times in rounds.items()})
        self.rounds = rounds

    def faster(self, name: str, baseline: str) -> float:
        """How many times as fast as the baseline: the median over rounds, in each of which the machine is the same."""
        pairs = zip(self.rounds[baseline], self.rounds[name], strict=True)
        return statistics.median(theirs / ours for theirs, ours in pairs)


def milliseconds(functions: Mapping[str, Callable[[], Any]], rounds: int = 15) -> Times:
    """The functions take turns; what is short is called several times in a turn."""
    calls = {}
    for name, function in functions.items():
        function()  # compiles, if anything does
        begin, count = time.perf_counter(), 0
        while count == 0 or time.perf_counter() - begin < WARM_UP_SECONDS:
            function()
            count += 1
        calls[name] = max(1, round(TURN_SECONDS * count / (time.perf_counter() - begin)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    order = list(functions)
    for _ in range(rounds):
        for name in order:
            begin = time.perf_counter()
            for _ in range(calls[name]):
                functions[name]()
            times[name].append(1e3 * (time.perf_counter() - begin) / calls[name])
        order.reverse()  # what one leaves in caches and free memory helps or harms the next
    return Times(times)


def keep_freed_memory() -> None:
    """Have glibc keep what is freed. Else it gives large blocks back and takes them anew, page by page: a millisecond
    that falls on one function or another as chance will have it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((_MMAP_THRESHOLD, 2**25), (_TRIM_THRESHOLD, 2**31 - 1)):
            mallopt(parameter, value)


PRODUCT = 2048
PRODUCT_OPERATIONS = 2 * PRODUCT**3


def matrix_product() -> Callable[[], Any]:
    """A float32 matrix product, as large as to show what the machine can do."""
    a, b, out = (torch.randn(PRODUCT, PRODUCT) for _ in range(3))
    return lambda: torch.mm(a, b, out=out)


def matrix_rate() -> float:
    """GFLOP/s"""
    return PRODUCT_OPERATIONS / milliseconds({"product": matrix_product()}, rounds=9)["product"] / 1e6


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
