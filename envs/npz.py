"""Our data files: `.npz` with named, typed arrays, a JSON header, and a hash over both.

Reading never runs code and never trusts the file: every member's name, type and size is checked against the bytes
that are really there before memory is taken for it.
"""

import hashlib
import json
import math
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qrl.common.files import atomic_write
from qrl.common.settings import Settings
from qrl.envs.errors import DatasetError

_HEADER = "header"


class Field(NamedTuple):
    """What an array of a file must be."""

    dtype: DTypeLike
    ndim: int


class Format(NamedTuple):
    """A kind of file: its name and version, written into the header, and its arrays."""

    name: str
    version: int
    fields: Mapping[str, Field]


Arrays = dict[str, NDArray[Any]]


class Data(ABC):
    """Base of data that is kept in such a file: a dataclass with a field for each array, and a header.

    Its `validate` raises a DatasetError at the first thing that does not fit, so that invalid data does not exist.
    """

    FORMAT: ClassVar[Format]
    HEADER: ClassVar[type[Settings]]
    header: Any

    def __post_init__(self) -> None:
        for name, field in self.FORMAT.fields.items():
            array = getattr(self, name)
            if array.dtype != field.dtype or array.ndim != field.ndim:
                raise DatasetError(
                    f"{name}: must be {field.ndim}-dimensional {np.dtype(field.dtype)}, "
                    f"not {array.ndim}-dimensional {array.dtype}"
                )
        self.validate()

    @abstractmethod
    def validate(self) -> None: ...

    @property
    def arrays(self) -> Arrays:
        return {name: getattr(self, name) for name in self.FORMAT.fields}

    @cached_property
    def content_hash(self) -> str:
        """As in the file: identifies the data together with its header."""
        return content_hash(self.FORMAT, self.header.model_dump(), self.arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        header, arrays = read(path, cls.FORMAT)
        checked = cls.HEADER.from_values(header, f"{path}: header", DatasetError)
        try:
            return cls(**arrays, header=checked)  # type: ignore[call-arg]
        except DatasetError as error:
            raise DatasetError(f"{path}: {error}") from error

    def save(self, path: str | Path) -> None:
        write(path, self.FORMAT, self.header.model_dump(), self.arrays)


def content_hash(kind: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of everything that a file holds."""
    digest = hashlib.sha256(_to_json(_with_format(kind, header)))
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def write(path: str | Path, kind: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file atomically; the same content gives the same bytes."""
    full = {**_with_format(kind, header), "content_hash": content_hash(kind, header, arrays)}
    members: dict[str, Any] = {_HEADER: np.frombuffer(_to_json(full), np.uint8), **arrays}
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, **members)


def read(path: str | Path, kind: Format) -> tuple[dict[str, Any], Arrays]:
    """The header (without format and hash) and the arrays of a file, each checked."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            header = _read_header(path, archive, kind)
            arrays = {name: _read_array(path, archive, name, field) for name, field in kind.fields.items()}
            expected = {f"{name}.npy" for name in (_HEADER, *kind.fields)}
            if set(archive.namelist()) != expected or len(archive.namelist()) != len(expected):
                raise DatasetError(f"{path}: holds other parts than {', '.join(sorted(expected))}")
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, RuntimeError, NotImplementedError) as error:
        raise DatasetError(
            f"{path} is damaged or not a {kind.name} file ({error}); copy or collect it again"
        ) from error
    recorded = header.pop("content_hash", None)
    if content_hash(kind, header, arrays) != recorded:
        raise DatasetError(
            f"{path}: the content does not match the hash in its header: the file was changed or damaged; "
            "copy or collect it again"
        )
    return header, arrays


def _read_header(path: Path, archive: zipfile.ZipFile, kind: Format) -> dict[str, Any]:
    if f"{_HEADER}.npy" not in archive.namelist():
        raise DatasetError(f"{path} is not a {kind.name} file: it has no header")
    raw = _read_array(path, archive, _HEADER, Field(np.uint8, 1))
    try:
        header = json.loads(raw.tobytes(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{path}: its header is not JSON ({error})") from error
    if not isinstance(header, dict) or header.get("format") != kind.name:
        found = header.get("format") if isinstance(header, dict) else header
        raise DatasetError(f"{path} is not a {kind.name} file: its header says {found!r}")
    if header.get("format_version") != kind.version:
        raise DatasetError(
            f"{path} has format version {header.get('format_version')!r}, but this release of qrl reads version "
            f"{kind.version}; use the release that wrote it, or collect the data again"
        )
    del header["format"], header["format_version"]
    return header


def _read_array(path: Path, archive: zipfile.ZipFile, name: str, field: Field) -> NDArray[Any]:
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise DatasetError(f"{path}: the array {name!r} is missing") from None
    # Stored, not compressed: so no member can claim more bytes than the file has.
    if info.compress_type != zipfile.ZIP_STORED:
        raise DatasetError(f"{path}: the array {name!r} is compressed, which this format does not use")
    if info.file_size > path.stat().st_size:
        raise DatasetError(f"{path}: the array {name!r} claims {info.file_size:,} bytes, more than the whole file has")
    with archive.open(info) as file:
        try:
            version = np.lib.format.read_magic(file)
            read_header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, fortran_order, dtype = read_header(file)
        except (ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"{path}: the array {name!r} is not in NumPy's format ({error})") from error
        if dtype != np.dtype(field.dtype) or len(shape) != field.ndim or fortran_order:
            raise DatasetError(
                f"{path}: the array {name!r} must be {field.ndim}-dimensional {np.dtype(field.dtype)} in C order, "
                f"but is {len(shape)}-dimensional {dtype}"
            )
        size = math.prod(shape) * dtype.itemsize
        if min(shape) < 0 or size != info.file_size - file.tell():
            raise DatasetError(
                f"{path}: the array {name!r} declares the shape {shape}, {size:,} bytes, "
                f"but {info.file_size - file.tell():,} bytes are there"
            )
        return np.frombuffer(file.read(), dtype).reshape(shape)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _with_format(kind: Format, header: Mapping[str, Any]) -> dict[str, Any]:
    return {**header, "format": kind.name, "format_version": kind.version}


def _to_json(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
