import contextlib
import io
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrl.envs.npy import Header, read_header


def saved(array: Any, version: tuple[int, int] = (1, 0)) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version)
    return buffer.getvalue()


def with_header(text: bytes, version: int = 1) -> bytes:
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i8", "|b1", "|u1", "<f2"])
def test_what_numpy_writes_is_read(dtype: str, version: tuple[int, int]) -> None:
    for array in (
        np.zeros((2, 3), dtype),
        np.zeros((4, 2), dtype, order="F"),
        np.zeros((0,), dtype),
        np.zeros((), dtype),
    ):
        file = io.BytesIO(saved(array, version))
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        assert read_header(file) == Header(array.shape, fortran, np.dtype(dtype))
        assert file.read() == array.tobytes()


def test_other_writers_may_order_and_space_the_header_otherwise() -> None:
    text = b"{'shape':(3,),'fortran_order':False,'descr':'<f4'}"
    assert read_header(io.BytesIO(with_header(text))) == Header((3,), False, np.dtype("<f4"))


GOOD = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n"


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace(b"}", b""),
        GOOD.replace(b"{", b""),
        GOOD.replace(b"(2, 3)", b"(2, 3"),
        GOOD.replace(b"(2, 3)", b"(2, -3)"),
        GOOD.replace(b"(2, 3)", b"(2, True)"),
        GOOD.replace(b"(2, 3)", b"(2, 3.0)"),
        GOOD.replace(b"(2, 3)", b"(" + b"9" * 5000 + b",)"),
        GOOD.replace(b"(2, 3)", b"(" + b"9" * 25 + b",)"),
        GOOD.replace(b"(2, 3)", b"__import__('os')"),
        GOOD.replace(b"<f8", b"|O"),
        GOOD.replace(b"<f8", b"<f9"),
        GOOD.replace(b"<f8", b"<c8"),
        GOOD.replace(b"'<f8'", b"[('a', '<f8')]"),
        GOOD.replace(b"'<f8'", b"()"),
        GOOD.replace(b"False", b"0"),
        GOOD.replace(b"'shape'", b"'shade'"),
        GOOD.replace(b", }", b", 'more': 1}"),
        b"(" * 5000,
        b"-" * 5000 + b"1",
        b"[" * 5000 + b"]" * 5000,
        b"\xff\x00",
        b"",
        b" " * 20_000,
    ],
    ids=range(23),
)
def test_malformed_headers_are_value_errors(text: bytes) -> None:
    for content in (with_header(text), with_header(text, 2)):
        with pytest.raises(ValueError, match=r"header|type"):
            read_header(io.BytesIO(content))


def test_foreign_and_truncated_files_are_value_errors() -> None:
    content = saved(np.zeros((2, 3)))
    for length in range(content.index(b"\n")):
        with pytest.raises(ValueError, match=r"magic string|ends within its header"):
            read_header(io.BytesIO(content[:length]))
    for foreign in (b"not an array", b"\x93NUMPY\x03\x00" + content[8:], b"\x93NUMPY\x09\x09" + content[8:]):
        with pytest.raises(ValueError, match=r"magic string|version"):
            read_header(io.BytesIO(foreign))


@given(st.data())
def test_mutated_headers_are_read_or_value_errors(data: st.DataObject) -> None:
    content = bytearray(saved(np.zeros((2, 3))))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, 100))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        read_header(io.BytesIO(content))


@pytest.mark.parametrize("shape", [(0, 2**62), (1,) * 65], ids=["too large", "too many dimensions"])
def test_shapes_that_no_array_can_have_are_value_errors(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"too (big|large|many)|dimension"):
        read_header(io.BytesIO(with_header(GOOD.replace(b"(2, 3)", str(shape).encode()))))
