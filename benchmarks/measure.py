"""Times as medians of alternating runs, so that noise affects all alike; memory; tables."""

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
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt in glibc


class Times(dict[str, float]):
    """The median time of each function."""

    def __init__(self, rounds: Mapping[str, Sequence[float]]) -> None:
        super().__init__({name: statistics.median(times) for name, times in rounds.items()})
        self.rounds = rounds

    def faster(self, name: str, baseline: str) -> float:
        """The speedup over the baseline: the median over rounds, within which the machine is the same."""
        pairs = zip(self.rounds[baseline], self.rounds[name], strict=True)
        return statistics.median(slow / fast for slow, fast in pairs)


def milliseconds(
    functions: Mapping[str, Callable[[], Any]], rounds: int = 15, clock: Callable[[], float] = time.perf_counter
) -> Times:
    """The functions take turns; short ones are called several times per turn.

    On one thread, the clock `time.process_time` leaves out what other processes take.
    """
    calls = {}
    for name, function in functions.items():
        function()  # compiles, if anything does
        begin, count = clock(), 0
        while count == 0 or clock() - begin < WARM_UP_SECONDS:
            function()
            count += 1
        calls[name] = max(1, round(TURN_SECONDS * count / (clock() - begin)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    order = list(functions)
    for _ in range(rounds):
        for name in order:
            begin = clock()
            for _ in range(calls[name]):
                functions[name]()
            times[name].append(1e3 * (clock() - begin) / calls[name])
        order.reverse()  # a function affects caches and free memory of the next one
    return Times(times)


def keep_freed_memory() -> None:
    """Have glibc keep freed memory.

    Otherwise it returns large blocks to the system and requests them again page by page: a millisecond that hits a
    random function.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((_MMAP_THRESHOLD, 2**25), (_TRIM_THRESHOLD, 2**31 - 1)):
            mallopt(parameter, value)


PRODUCT = 2048
PRODUCT_OPERATIONS = 2 * PRODUCT**3


def matrix_product() -> Callable[[], Any]:
    """A float32 matrix product, large enough to reach the machine's peak rate."""
    a, b, out = (torch.randn(PRODUCT, PRODUCT) for _ in range(3))
    return lambda: torch.mm(a, b, out=out)


def matrix_rate() -> float:
    """GFLOP/s"""
    return PRODUCT_OPERATIONS / milliseconds({"product": matrix_product()}, rounds=9)["product"] / 1e6


def peak_memory() -> float:
    """Peak resident memory of this process, in GiB."""
    # Not getrusage, which also counts the process that started this one.
    match = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) / 2**20


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A section of Markdown."""
    lines = [f"## {title}", "", f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, *(["", note] if note else [])])
