"""One process at a time in a folder."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qrl.common.errors import FileError, UserError

try:
    import fcntl
except ImportError:  # not a POSIX system: locks are not taken there
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}  # of file systems without flock


@contextmanager
def locked(folder: Path, error: type[UserError]) -> Iterator[None]:
    """Hold the folder's lock; it is released when the process ends, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as problem:
        raise FileError(f"{folder} cannot be written: {problem.strerror}") from problem
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not os.path.samestat(os.fstat(file.fileno()), (folder / LOCK).stat()):
                    raise FileNotFoundError  # deleted by its last holder, meanwhile
            except (BlockingIOError, PermissionError, FileNotFoundError):
                raise error(f"{folder} is in use by another process") from None
            except OSError as problem:
                if problem.errno not in _NO_LOCKS:
                    raise FileError(f"{folder} cannot be locked: {problem.strerror}") from problem
        yield
