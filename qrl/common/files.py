"""Reading only regular files, and writing files that are either complete or absent."""

import csv
import io
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO, Any, NamedTuple

from qrl.common.errors import FileError, UserError
from qrl.common.text import clip, shown

MAX_PATH_BYTES, MAX_NAME_BYTES = 4095, 255  # what Linux and common file systems allow


def check_path(path: str | Path, error: type[UserError] = FileError) -> Path:
    """Refuse what no file system can hold: NUL characters, lone surrogates, and excessive lengths."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise error(f"{shown(str(path))} is not a path: it contains invalid characters") from None
    if b"\0" in encoded:
        raise error(f"{shown(str(path))} is not a path: it contains a NUL character")
    if len(encoded) > MAX_PATH_BYTES or max(map(len, encoded.split(b"/"))) > MAX_NAME_BYTES:
        raise error(f"{shown(str(path))} is not a path: it is longer than a file system allows")
    return Path(path)


def regular_file(path: str | Path, error: type[UserError] = FileError) -> Path:
    """Refuse what cannot be read to its end: devices may never end, pipes block. Every reader calls this first."""
    path = check_path(path, error)
    try:
        mode = path.stat().st_mode
    except OSError as problem:
        raise error(f"{clip(path)} cannot be read: {problem.strerror}") from problem
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device, pipe or socket"
        raise error(f"{clip(path)} cannot be read: it is {kind}, not a file")
    return path


def is_file(path: Path | Traversable) -> bool:
    """Whether there is a file; False also for paths that cannot exist or may not be seen."""
    try:
        return path.is_file()
    except OSError:
        return False


FIGURE_FORMATS = (".png", ".pdf", ".svg")
_LEFTOVER = ".tmp"  # ends the names of temporary files


def check_output(path: str | Path, suffix: str | tuple[str, ...], force: bool = False) -> Path:
    """Refuse an output that could not be written at the end, before any work is done; `suffix`: one, or several."""
    path = check_path(path)
    suffixes = (suffix,) if isinstance(suffix, str) else suffix
    if path.suffix not in suffixes:
        raise FileError(f"{path}: the name of the output must end in {' or '.join(suffixes)}")
    try:
        if path.is_dir():
            raise FileError(f"{path} is a folder; name a file in it")
        if path.exists() and not force:
            raise FileError(f"{path} exists already; choose another name or overwrite it with --force")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
    except OSError as problem:  # below a folder that may not be searched
        raise FileError(f"{path} cannot be written: {problem.strerror}") from problem
    if not folder.is_dir():
        raise FileError(f"{path} cannot be written: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path} cannot be written: no permission to write in {folder}")
    return path


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a binary file that appears at `path`, replacing an existing file, only if the block succeeds."""
    path = check_path(path)
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(_LEFTOVER, f".{path.name}.", path.parent)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())  # files of mkstemp are readable only by their owner
        os.replace(temporary, path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def is_leftover(name: str) -> bool:
    """Whether a file is a temporary one of `atomic_write`: while nobody writes, a kill has left it."""
    return name.startswith(".") and name.endswith(_LEFTOVER)


def remove_leftovers(folder: Path) -> None:
    """Delete what killed writes have left in a folder that nobody else writes to."""
    for file in folder.glob(f".*{_LEFTOVER}"):
        file.unlink(missing_ok=True)


def _umask() -> int:
    # The umask can only be read by setting it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def read_text(path: str | Path, max_bytes: int = 2**20) -> str:
    """The text of a small UTF-8 file."""
    path = regular_file(path)
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise FileError(f"{path} is larger than {max_bytes:,} bytes, too large for a text file of this kind")
        return content.decode("utf-8")
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 text") from error


class Table(NamedTuple):
    """The rows of a CSV file by column; None stands for columns that a row lacks, or for the names of extra ones."""

    columns: list[str]
    rows: list[dict[str, Any]]
    lines: list[int]  # the last line of each row


def read_csv(path: str | Path, max_bytes: int = 2**28) -> Table:
    """A CSV file whose first line names the columns."""
    reader = csv.DictReader(io.StringIO(read_text(path, max_bytes)))
    rows, lines = [], []
    try:
        for row in reader:
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise FileError(f"{path} is damaged near line {reader.line_num + 1}: {error}") from None
    return Table(list(reader.fieldnames or []), rows, lines)


def write_csv(path: str | Path, rows: Iterable[Sequence[object]]) -> None:
    """Write rows, the first of which names the columns."""
    csv.writer(text := io.StringIO(), lineterminator="\n").writerows(rows)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())
