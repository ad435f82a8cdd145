"""The file format: whatever is done to a file is noticed before it is used."""

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qrl.envs import npz
from qrl.envs.errors import DatasetError

KIND = npz.Format("test-file", 3, {"numbers": npz.Field(np.float64, 2), "ids": npz.Field(np.int32, 1)})
HEADER = {"made by": "a test", "list": [1, 2.5, None]}
ARRAYS: npz.Arrays = {"numbers": np.arange(6.0).reshape(2, 3), "ids": np.arange(4, dtype=np.int32)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    npz.write(tmp_path / "file.npz", KIND, HEADER, ARRAYS)
    return tmp_path / "file.npz"


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def as_npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), **options)
    return buffer.getvalue()


def npy_header(shape: str, dtype: str = "<f8") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def test_round_trip(path: Path) -> None:
    header, arrays = npz.read(path, KIND)
    assert header == HEADER
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_same_content_same_bytes(path: Path, tmp_path: Path) -> None:
    npz.write(tmp_path / "again.npz", KIND, dict(reversed(HEADER.items())), ARRAYS)
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def edit_header(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, bytes]], None]:
    def edit(parts: dict[str, bytes]) -> None:
        header = json.loads(np.load(io.BytesIO(parts["header.npy"])).tobytes())
        header = change(header) or header
        parts["header.npy"] = as_npy(np.frombuffer(json.dumps(header).encode(), np.uint8))

    return edit


def put(name: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    def edit(parts: dict[str, bytes]) -> None:
        parts[f"{name}.npy"] = content

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edit_header(lambda h: h.update({"made by": "somebody else"})), "does not match the hash"),
        (edit_header(lambda h: h.update(content_hash="0" * 64)), "does not match the hash"),
        (edit_header(lambda h: h.pop("content_hash") and None), "does not match the hash"),
        (edit_header(lambda h: h.update(format="other-file")), "not a test-file file: its header says 'other-file'"),
        (
            edit_header(lambda h: h.update(format_version=4)),
            "format version 4, but .* reads version 3",
        ),
        (edit_header(lambda h: [h]), "not a test-file file"),
        (put("header", as_npy(np.frombuffer(b"{", np.uint8))), "header is not JSON"),
        (put("header", as_npy(np.frombuffer(b"[" * 100_000, np.uint8))), "header is not JSON"),
        (put("header", as_npy(np.frombuffer(b'{"a": NaN}', np.uint8))), "NaN is no JSON"),
        (put("header", as_npy(np.frombuffer(b"9" * 5000, np.uint8))), "header is not JSON"),
        (put("ids", as_npy(np.arange(1, 5, dtype=np.int32))), "does not match the hash"),
        (put("ids", as_npy(np.arange(4))), "'ids' must be 1-dimensional int32 in C order, but is 1-dimensional int64"),
        (put("ids", as_npy(np.array([{}, 1]), allow_pickle=True)), "'ids' must be 1-dimensional int32"),
        (put("numbers", as_npy(np.arange(6.0))), "'numbers' must be 2-dimensional"),
        (put("numbers", as_npy(np.asfortranarray(np.ones((2, 3))))), "in C order"),
        (put("numbers", npy_header("(1000000000, 1000000000)") + b"12345678"), "declares the shape"),
        (put("numbers", npy_header("(-1, -1)") + b"12345678"), "declares the shape|NumPy's format"),
        (put("numbers", npy_header("(1, 1)", "|O") + b"12345678"), "must be 2-dimensional"),
        (put("numbers", npy_header("__import__('os')")), "NumPy's format"),
        (put("numbers", b"not an array"), "NumPy's format"),
        (put("stranger", as_npy(np.zeros(1))), "holds other parts"),
        (lambda parts: parts.pop("ids.npy") and None, "the array 'ids' is missing"),
        (lambda parts: parts.pop("header.npy") and None, "it has no header"),
    ],
)
def test_tampering_is_caught(path: Path, edit: Callable[[dict[str, bytes]], None], message: str) -> None:
    parts = members(path)
    edit(parts)
    rewrite(path, parts)
    with pytest.raises(DatasetError, match=message) as caught:
        npz.read(path, KIND)
    assert str(path) in str(caught.value)


def test_compression_bombs_are_refused(path: Path) -> None:
    rewrite(path, members(path), zipfile.ZIP_DEFLATED)
    with pytest.raises(DatasetError, match="is compressed"):
        npz.read(path, KIND)


@pytest.mark.parametrize("keep", [0, 1, 30, 200, -1, -30])
def test_truncated_files(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DatasetError, match="damaged or not a test-file file"):
        npz.read(path, KIND)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.data())
def test_a_flipped_byte_is_noticed_or_harmless(path: Path, data: st.DataObject) -> None:
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    changed = path.with_name("changed.npz")
    changed.write_bytes(content)
    try:
        header, arrays = npz.read(changed, KIND)
    except DatasetError:
        return
    # Some bytes of the zip container (times, attributes) mean nothing for the content.
    assert header == HEADER
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


def test_files_that_are_not_there_or_not_ours(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "foreign.npz", x=np.zeros(3))
    for name, message in [
        ("none.npz", "No such file"),
        ("text.npz", "not a test-file file"),
        ("foreign.npz", "it has no header"),
        ("", "Is a directory"),
    ]:
        with pytest.raises(DatasetError, match=message):
            npz.read(tmp_path / name, KIND)
