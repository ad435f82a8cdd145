"""The data file format: `.npz` with named, typed arrays, a JSON header, and a hash over both.

Reading never runs code and never trusts the file: the name, dtype and size of every member are checked against the
bytes on disk before memory is allocated.
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

from qrl.common.files import atomic_write, regular_file
from qrl.common.json_text import parse_json
from qrl.common.settings import Settings
from qrl.common.text import clip, shown
from qrl.envs import npy
from qrl.envs.errors import DatasetError

_HEADER = "header"
# A member name flagged as UTF-8 may not be.
ZIP_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    EOFError,
    RuntimeError,
    NotImplementedError,
    UnicodeDecodeError,
)


class ArraySpec(NamedTuple):
    """Required dtype and number of dimensions of an array in a file."""

    dtype: DTypeLike
    ndim: int


class Format(NamedTuple):
    """A file format: its name and version, both written into the header, and its arrays."""

    name: str
    version: int
    specs: Mapping[str, ArraySpec]


Arrays = dict[str, NDArray[Any]]


class Data(ABC):
    """Base class of data stored in one file: a dataclass with one field per array, and a header.

    `validate` raises a DatasetError at the first inconsistency, so every instance is valid.
    """

    FORMAT: ClassVar[Format]
    HEADER: ClassVar[type[Settings]]
    header: Any

    def __post_init__(self) -> None:
        for name, spec in self.FORMAT.specs.items():
            array = getattr(self, name)
            if array.dtype != spec.dtype or array.ndim != spec.ndim:
                raise DatasetError(
                    f"{name}: must be {spec.ndim}-dimensional {np.dtype(spec.dtype)}, "
                    f"not {array.ndim}-dimensional {array.dtype}"
                )
        self.validate()

    @abstractmethod
    def validate(self) -> None: ...

    @property
    def arrays(self) -> Arrays:
        return {name: getattr(self, name) for name in self.FORMAT.specs}

    @cached_property
    def content_hash(self) -> str:
        """The hash stored in the file; identifies the data together with its header."""
        return content_hash(self.FORMAT, self.header.model_dump(), self.arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        values, arrays = read(path, cls.FORMAT)
        header = cls.HEADER.from_values(values, f"{path}: header", DatasetError)
        try:
            return cls(**arrays, header=header)  # type: ignore[call-arg]
        except DatasetError as error:
            raise DatasetError(f"{path}: {error}") from error

    def save(self, path: str | Path) -> None:
        write(path, self.FORMAT, self.header.model_dump(), self.arrays)


def content_hash(file_format: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the header and all arrays."""
    digest = hashlib.sha256(_to_json(_with_format(file_format, header)))
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def write(path: str | Path, file_format: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file atomically. Equal content yields identical bytes."""
    full = {**_with_format(file_format, header), "content_hash": content_hash(file_format, header, arrays)}
    members: dict[str, Any] = {_HEADER: np.frombuffer(_to_json(full), np.uint8), **arrays}
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, **members)


def read(path: str | Path, file_format: Format) -> tuple[dict[str, Any], Arrays]:
    """Read and check the header (without format and hash) and the arrays of a file."""
    path = regular_file(path, DatasetError)
    try:
        with zipfile.ZipFile(path) as archive:
            header = _read_header(path, archive, file_format)
            arrays = {name: _read_array(path, archive, name, spec) for name, spec in file_format.specs.items()}
            expected = {f"{name}.npy" for name in (_HEADER, *file_format.specs)}
            if set(archive.namelist()) != expected or len(archive.namelist()) != len(expected):
                raise DatasetError(f"{path}: contains members other than {', '.join(sorted(expected))}")
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error
    except ZIP_ERRORS as error:
        raise DatasetError(
            f"{path} is damaged or not a {file_format.name} file ({clip(error)}); copy it or collect the data again"
        ) from error
    recorded = header.pop("content_hash", None)
    if content_hash(file_format, header, arrays) != recorded:
        raise DatasetError(
            f"{path}: the content does not match the hash in its header: the file was modified or damaged; "
            "copy it or collect the data again"
        )
    return header, arrays


def _read_header(path: Path, archive: zipfile.ZipFile, file_format: Format) -> dict[str, Any]:
    if f"{_HEADER}.npy" not in archive.namelist():
        raise DatasetError(f"{path} is not a {file_format.name} file: it has no header")
    raw = _read_array(path, archive, _HEADER, ArraySpec(np.uint8, 1))
    try:
        header = parse_json(raw.tobytes())
    except ValueError as error:
        raise DatasetError(f"{path}: the header is not valid JSON ({clip(error)})") from error
    if not isinstance(header, dict) or header.get("format") != file_format.name:
        name = header.get("format") if isinstance(header, dict) else header
        raise DatasetError(f"{path} is not a {file_format.name} file: its header says {shown(name)}")
    if header.get("format_version") != file_format.version:
        raise DatasetError(
            f"{path} has format version {shown(header.get('format_version'))}, but this release of qrl reads version "
            f"{file_format.version}; use the release that wrote it, or collect the data again"
        )
    del header["format"], header["format_version"]
    return header


def _read_array(path: Path, archive: zipfile.ZipFile, name: str, spec: ArraySpec) -> NDArray[Any]:
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise DatasetError(f"{path}: the array {name!r} is missing") from None
    # Members are stored uncompressed, so none can legitimately be larger than the file.
    if info.compress_type != zipfile.ZIP_STORED:
        raise DatasetError(f"{path}: the array {name!r} is compressed; this format stores arrays uncompressed")
    if info.file_size > path.stat().st_size:
        raise DatasetError(f"{path}: the array {name!r} claims {info.file_size:,} bytes, more than the file has")
    with archive.open(info) as file:
        try:
            shape, fortran_order, dtype = npy.read_header(file)
        except ValueError as error:
            raise DatasetError(
                f"{path}: the array {name!r} is damaged or not in NumPy's format ({clip(error)})"
            ) from error
        if dtype != np.dtype(spec.dtype) or len(shape) != spec.ndim or fortran_order:
            raise DatasetError(
                f"{path}: the array {name!r} must be {spec.ndim}-dimensional {np.dtype(spec.dtype)} in C order, "
                f"but is {len(shape)}-dimensional {dtype}"
            )
        size = math.prod(shape) * dtype.itemsize
        if size != info.file_size - file.tell():
            raise DatasetError(
                f"{path}: the array {name!r} declares the shape {shown(shape)}, {size:,} bytes, "
                f"but {info.file_size - file.tell():,} bytes are stored"
            )
        return np.frombuffer(file.read(), dtype).reshape(shape)


def _with_format(file_format: Format, header: Mapping[str, Any]) -> dict[str, Any]:
    return {**header, "format": file_format.name, "format_version": file_format.version}


def _to_json(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
