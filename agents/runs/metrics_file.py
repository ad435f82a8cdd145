"""metrics.csv: one row per logged step."""

import csv
import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_text

TIMES = ("steps_per_second", "cpu_seconds")


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

    def start(self, columns: Sequence[str], last_step: int) -> list[str]:
        """Create the file, or truncate it to the rows up to `last_step`; returns its columns.

        A file that was written with other metrics keeps its columns, and gets the new ones.
        """
        # A kill may have torn the last line: it lacks columns, or its step is beyond the checkpoint.
        rows = [row for row in self._read() if None not in row.values()] if self.path.exists() else []
        try:
            rows = [row for row in rows if int(row["step"]) <= last_step]
        except (KeyError, ValueError):
            raise FileError(f"{self.path} is damaged: a row has no step; restore the file or delete it") from None
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
        try:
            *_, row = self._read()
            return {key: float(value) for key, value in row.items() if value}
        except (ValueError, TypeError):
            raise FileError(f"{self.path} is damaged") from None

    def seconds(self) -> float:
        """The processor time of all logged training steps."""
        times = [seconds for _, seconds in self._timed()]
        return times[-1] if times else 0.0

    def evaluations(self, metric: str) -> list[dict[str, Any]]:
        """The rows that have a value of this metric, with the seconds of the training steps up to each."""
        return [{**row, "seconds": f"{seconds:.2f}"} for row, seconds in self._timed() if row.get(metric)]

    def _timed(self) -> list[tuple[dict[str, Any], float]]:
        """Every row with the seconds of the training steps up to it.

        Processor time, because other work on the machine would count in wall-clock time.
        """
        last_step, total, rows = 0, 0.0, []
        try:
            for row in self._read():
                # Release 0.1 logged wall-clock time only.
                wall = (int(row["step"]) - last_step) / float(row["steps_per_second"])
                total += float(row.get("cpu_seconds") or wall)
                last_step = int(row["step"])
                rows.append((row, total))
        except (ValueError, KeyError, TypeError, ZeroDivisionError):
            raise FileError(f"{self.path} is damaged") from None
        return rows

    def _read(self) -> list[dict[str, Any]]:
        return list(csv.DictReader(io.StringIO(read_text(self.path, max_bytes=2**30))))
