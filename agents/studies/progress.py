"""The progress of a sweep: a bar on a terminal, otherwise a plain line now and then."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tqdm import tqdm

PLAIN_SECONDS = 30  # between lines without a terminal


class Progress:
    """Counts runs; `done` of `total` were complete before."""

    def __init__(self, total: int, done: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._before, self._done, self._failed = total, done, done, 0
        self._clock = clock
        self._start = self._line = clock()
        self._bar = tqdm(total=total, initial=done, unit=" runs", disable=None)  # None: only on a terminal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    @property
    def timeout(self) -> float | None:
        """Seconds after which to call `tick`; None: never."""
        return max(0, self._line + PLAIN_SECONDS - self._clock()) if self._bar.disable else None

    def finished(self, run: str, error: str | None) -> None:
        """Count a run that is complete or has failed for good."""
        self._done += 1
        self._bar.update()
        if error is not None:
            self._failed += 1
            with tqdm.external_write_mode():
                print(f"failed: {run}: {error.splitlines()[0]}", flush=True)

    def tick(self) -> None:
        """Print a line, if it is time for one."""
        now = self._clock()
        if not self._bar.disable or now - self._line < PLAIN_SECONDS:
            return
        self._line = now
        finished = self._done - self._before
        left = "time left unknown until the first run is done"
        if finished:
            minutes = (now - self._start) / finished * (self._total - self._done) / 60
            left = f"about {minutes:.1f} minutes left"
        print(f"{self._done} of {self._total} runs done, {self._failed} failed; {left}", file=sys.stderr, flush=True)
