"""metrics.csv: one row per logged step."""

import csv
import io
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_text

TIMES = ("steps_per_second", "cpu_seconds")
Row = dict[str, str]


class Clock:
    """The time of the training steps after `step`."""

    def __init__(self, step: int) -> None:
        self.step, self.wall, self.cpu = step, time.monotonic(), time.process_time()

    def times(self, step: int) -> dict[str, float]:
        """The columns `TIMES` of a row: a wall-clock rate, and the processor time of all threads."""
        rate = (step - self.step) / max(time.monotonic() - self.wall, 1e-9)
        return dict(zip(TIMES, (rate, time.process_time() - self.cpu), strict=True))


class MetricsFile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def start(self, columns: Sequence[str], last_step: int, log_every: int = 1) -> list[str]:
        """Create the file, or truncate it to the rows up to `last_step`; returns its columns.

        A file that was written with other metrics keeps its columns, and gets the new ones. Lines that cannot be read
        are dropped after the last row up to `last_step`, as a kill may leave them; before it, they are an error.
        log_every: at most so many steps lie between two rows.
        """
        rows = self._rows_up_to(last_step, log_every) if last_step > 0 and self.path.exists() else []
        columns = list(dict.fromkeys([*columns, *(key for row in rows[:1] for key in row)]))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        with atomic_write(self.path) as file:
            file.write(text.getvalue().encode())
        return columns

    def append(self, columns: Sequence[str], row: dict[str, float]) -> None:
        try:
            with self.path.open("a") as file:
                csv.DictWriter(file, columns, lineterminator="\n").writerow(row)
        except OSError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}") from error

    def last(self) -> dict[str, float]:
        """The last row."""
        rows = self._complete()
        if not rows:
            raise FileError(f"{self.path} is damaged: it has no rows")
        return {key: float(value) for key, value in rows[-1].items() if value}

    def seconds(self) -> float:
        """The processor time of all logged training steps."""
        times = [seconds for _, seconds in self._timed()]
        return times[-1] if times else 0.0

    def evaluations(self, metric: str) -> list[dict[str, Any]]:
        """The rows that have a value of this metric, with the seconds of the training steps up to each."""
        return [{**row, "seconds": f"{seconds:.2f}"} for row, seconds in self._timed() if row.get(metric)]

    def _timed(self) -> list[tuple[Row, float]]:
        """Every row with the seconds of the training steps up to it.

        Processor time, because other work on the machine would count in wall-clock time.
        """
        last_step, total, rows = 0, 0.0, []
        try:
            for row in self._complete():
                # Release 0.1 logged wall-clock time only.
                wall = (int(row["step"]) - last_step) / float(row["steps_per_second"])
                total += float(row.get("cpu_seconds") or wall)
                last_step = int(row["step"])
                rows.append((row, total))
        except (ValueError, KeyError, ZeroDivisionError):
            raise FileError(f"{self.path} is damaged: its times cannot be read") from None
        return rows

    # Reading

    def _complete(self) -> list[Row]:
        """All rows, of a file that is whole."""
        rows = self._read()
        if None in rows:
            raise FileError(f"{self.path} is damaged: line {rows.index(None) + 2} cannot be read")
        return [row for row in rows if row is not None]

    def _rows_up_to(self, last_step: int, log_every: int) -> list[Row]:
        rows = self._read()
        count = max((i + 1 for i, row in enumerate(rows) if row and int(row["step"]) <= last_step), default=0)
        kept = [row for row in rows[:count] if row is not None]
        known = int(kept[-1]["step"]) if kept else 0
        # Otherwise an unreadable line after the kept rows may be one of those that are to be kept.
        whole = None not in rows or last_step - known < log_every
        if len(kept) < count or not whole:
            raise FileError(
                f"{self.path} is damaged: not all rows up to step {last_step} can be read; restore the file, or delete "
                "it to do without these rows"
            )
        return kept

    def _read(self) -> list[Row | None]:
        """The rows; None for a line that is not one."""
        first, *lines = read_text(self.path, max_bytes=2**30).removesuffix("\n").split("\n")
        columns = _fields(first)
        if "step" not in columns or len(set(columns)) < len(columns):
            raise FileError(f"{self.path} is damaged: its first line must name its columns; restore it or delete it")
        rows = [_row(columns, _fields(line)) for line in lines]
        steps = [0, *(int(row["step"]) for row in rows if row)]
        for before, step in itertools.pairwise(steps):
            if step <= before:  # nothing that a kill leaves
                raise FileError(
                    f"{self.path} is damaged: step {step} comes after step {before}; restore it or delete it"
                )
        return rows


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _row(columns: list[str], fields: list[str]) -> Row | None:
    """The values by column, if all are numbers or absent."""
    row = dict(zip(columns, fields, strict=False))
    try:
        for value in row.values():
            float(value or 0)
        return row if len(fields) == len(columns) and int(row["step"]) > 0 else None
    except (ValueError, KeyError):
        return None
