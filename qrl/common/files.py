"""Files that are either complete or absent: written to a temporary file, then renamed."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from qrl.common.errors import FileError

_LEFTOVER = ".tmp"  # ends the names of temporary files


def check_output(path: str | Path, suffix: str, force: bool = False) -> Path:
    """Refuse an output that could not be written at the end, before any work is done."""
    path = Path(path)
    if path.suffix != suffix:
        raise FileError(f"{path}: the name of the output must end in {suffix}")
    if path.is_dir():
        raise FileError(f"{path} is a folder; name a file in it")
    if path.exists() and not force:
        raise FileError(f"{path} exists already; choose another name or overwrite it with --force")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise FileError(f"{path} cannot be written: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path} cannot be written: no permission to write in {folder}")
    return path


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a binary file that appears at `path`, replacing an existing file, only if the block succeeds."""
    path = Path(path)
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
    path = Path(path)
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
