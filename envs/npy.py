"""Headers of NumPy's .npy format, read without trusting them."""

import ast
import re
import struct
from typing import IO, Any, NamedTuple

import numpy as np

MAX_HEADER_BYTES = 10_000  # as in NumPy: literals of a few bytes more can exhaust Python's parser
_LENGTHS = {(1, 0): "<H", (2, 0): "<I"}  # of the header, by version of the format
_NUMBER = re.compile(r"[<>|=]?[biuf]\d{1,2}")  # a real one


class Header(NamedTuple):
    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]


def read_header(file: IO[bytes]) -> Header:
    """The header of an array of real numbers, at the start of a file; raises a ValueError for any other content."""
    length_format = _LENGTHS.get(np.lib.format.read_magic(file))
    if length_format is None:
        raise ValueError("its version is neither 1.0 nor 2.0")
    (length,) = struct.unpack(length_format, _read(file, struct.calcsize(length_format)))
    if length > MAX_HEADER_BYTES:
        raise ValueError(f"its header has {length:,} bytes, more than {MAX_HEADER_BYTES:,}")
    return _parse_header(_read(file, length).decode("latin1"))


def _read(file: IO[bytes], count: int) -> bytes:
    content = file.read(count)
    if len(content) < count:
        raise ValueError("it ends within its header")
    return content


def _parse_header(text: str) -> Header:
    try:
        header = ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        header = None  # all that the documentation of literal_eval says of malformed text
    match header:
        case {"descr": str(descr), "fortran_order": bool(fortran_order), "shape": tuple(shape), **others} if not others:
            if all(type(size) is int and 0 <= size < 2**63 for size in shape) and _NUMBER.fullmatch(descr):
                dtype = _dtype(descr)
                np.broadcast_to(np.empty((), dtype), shape)  # a ValueError for a shape that no array can have
                return Header(shape, fortran_order, dtype)
    raise ValueError("its header is not that of an array of real numbers")


def _dtype(descr: str) -> np.dtype[Any]:
    try:
        return np.dtype(descr)
    except TypeError:
        raise ValueError(f"NumPy has no type {descr}") from None
