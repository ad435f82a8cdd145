"""Progress on stderr: a bar on a terminal, otherwise a plain line every half minute."""

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from tqdm import tqdm

PLAIN_SECONDS = 30  # between lines without a terminal


class Progress:
    """Counts `unit` up to `total`; the first `done` of them were completed earlier and do not affect the time left."""

    def __init__(self, total: int, done: int, unit: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._initial, self._done, self._unit = total, done, done, unit
        self._details: Mapping[str, object] = {}
        self._clock = clock
        self._start = self._last_line = clock()
        self._bar = tqdm(total=total, initial=done, unit=f" {unit}", disable=None)  # None: only on a terminal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    @property
    def timeout(self) -> float | None:
        """Seconds until the next call of `tick` is due; None on a terminal."""
        return max(0, self._last_line + PLAIN_SECONDS - self._clock()) if self._bar.disable else None

    def update(self, done: int, details: Mapping[str, object]) -> None:
        """Set the count and the values shown beside it."""
        self._bar.update(done - self._done)
        self._bar.set_postfix(details)
        self._done, self._details = done, details

    def tick(self) -> None:
        """Print a plain line if one is due."""
        now = self._clock()
        if not self._bar.disable or now - self._last_line < PLAIN_SECONDS:
            return
        self._last_line = now
        left = "time left unknown"
        if self._done > self._initial:
            minutes = (now - self._start) / (self._done - self._initial) * (self._total - self._done) / 60
            left = f"about {minutes:.1f} minutes left"
        details = "".join(f", {name} {value}" for name, value in self._details.items())
        print(f"{self._done} of {self._total} {self._unit}{details}; {left}", file=sys.stderr, flush=True)
