"""The file format: any change to a file is detected before its data is used."""

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

FORMAT = npz.Format("test-file", 3, {"numbers": npz.ArraySpec(np.float64, 2), "ids": npz.ArraySpec(np.int32, 1)})
HEADER = {"author": "a test", "list": [1, 2.5, None]}
ARRAYS: npz.Arrays = {"numbers": np.arange(6.0).reshape(2, 3), "ids": np.arange(4, dtype=np.int32)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    npz.write(tmp_path / "file.npz", FORMAT, HEADER, ARRAYS)
    return tmp_path / "file.npz"


def read_members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def as_npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), **options)
    return buffer.getvalue()


def npy_header(shape: str, dtype: str = "<f8") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def test_round_trip(path: Path) -> None:
    header, arrays = npz.read(path, FORMAT)
    assert header == HEADER
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_equal_content_yields_identical_bytes(path: Path, tmp_path: Path) -> None:
    npz.write(tmp_path / "again.npz", FORMAT, dict(reversed(HEADER.items())), ARRAYS)
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def edit_header(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, bytes]], None]:
    def edit(members: dict[str, bytes]) -> None:
        header = json.loads(np.load(io.BytesIO(members["header.npy"])).tobytes())
        header = change(header) or header
        members["header.npy"] = as_npy(np.frombuffer(json.dumps(header).encode(), np.uint8))

    return edit


def put(name: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    def edit(members: dict[str, bytes]) -> None:
        members[f"{name}.npy"] = content

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edit_header(lambda h: h.update(author="somebody else")), "does not match the hash"),
        (edit_header(lambda h: h.update(content_hash="0" * 64)), "does not match the hash"),
        (edit_header(lambda h: h.pop("content_hash") and None), "does not match the hash"),
        (edit_header(lambda h: h.update(format="other-file")), "not a test-file file: its header says 'other-file'"),
        (
            edit_header(lambda h: h.update(format_version=4)),
            "format version 4, but .* reads version 3",
        ),
        (edit_header(lambda h: [h]), "not a test-file file"),
        (put("header", as_npy(np.frombuffer(b"{", np.uint8))), "header is not valid JSON"),
        (put("header", as_npy(np.frombuffer(b"[" * 100_000, np.uint8))), "header is not valid JSON"),
        (put("header", as_npy(np.frombuffer(b'{"a": NaN}', np.uint8))), "NaN is not allowed in JSON"),
        (put("header", as_npy(np.frombuffer(b"9" * 5000, np.uint8))), "header is not valid JSON"),
        (edit_header(lambda h: h.update(author="\ud800")), "header is not valid JSON .*surrogates not allowed"),
        (edit_header(lambda h: h.update({"\ud800": 1})), "header is not valid JSON .*surrogates not allowed"),
        (put("header", as_npy(np.frombuffer(b'{"a": 1e999}', np.uint8))), "header is not valid JSON"),
        (put("ids", as_npy(np.arange(4, dtype=np.int32)).replace(b"}", b" ")), "'ids' is damaged or not in NumPy's"),
        (put("header", npy_header("(1,)").replace(b"}", b" ") + b"x"), "'header' is damaged or not in NumPy's"),
        (put("ids", as_npy(np.arange(1, 5, dtype=np.int32))), "does not match the hash"),
        (put("ids", as_npy(np.arange(4))), "'ids' must be 1-dimensional int32 in C order, but is 1-dimensional int64"),
        (put("ids", as_npy(np.array([{}, 1]), allow_pickle=True)), "'ids' .* not that of an array of real numbers"),
        (put("numbers", as_npy(np.arange(6.0))), "'numbers' must be 2-dimensional"),
        (put("numbers", as_npy(np.asfortranarray(np.ones((2, 3))))), "in C order"),
        (put("numbers", npy_header("(1000000000, 1000000000)") + b"12345678"), "declares the shape"),
        (put("numbers", npy_header("(-1, -1)") + b"12345678"), "declares the shape|NumPy's format"),
        (put("numbers", npy_header("(1, 1)", "|O") + b"12345678"), "not that of an array of real numbers"),
        (put("numbers", npy_header("(0, 4611686018427387904)")), "'numbers' is damaged or not in NumPy's"),
        (put("numbers", npy_header("__import__('os')")), "NumPy's format"),
        (put("numbers", b"not an array"), "NumPy's format"),
        (put("stranger", as_npy(np.zeros(1))), "contains members other than"),
        (lambda members: members.pop("ids.npy") and None, "the array 'ids' is missing"),
        (lambda members: members.pop("header.npy") and None, "it has no header"),
    ],
)
def test_tampering_is_detected(path: Path, edit: Callable[[dict[str, bytes]], None], message: str) -> None:
    members = read_members(path)
    edit(members)
    write_members(path, members)
    with pytest.raises(DatasetError, match=message) as caught:
        npz.read(path, FORMAT)
    assert str(path) in str(caught.value)


def test_compressed_members_are_refused(path: Path) -> None:
    write_members(path, read_members(path), zipfile.ZIP_DEFLATED)
    with pytest.raises(DatasetError, match="is compressed"):
        npz.read(path, FORMAT)


@pytest.mark.parametrize("keep", [0, 1, 30, 200, -1, -30])
def test_truncated_files(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DatasetError, match="damaged or not a test-file file"):
        npz.read(path, FORMAT)


def test_errors_do_not_repeat_the_file(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[26:28] = struct.pack("<H", 700)  # the length of the name of the first member
    path.write_bytes(data)
    with pytest.raises(DatasetError, match="is damaged or not a test-file file") as raised:
        npz.read(path, FORMAT)
    assert len(str(raised.value)) < 400 + len(str(path))


def test_member_names_that_are_not_utf8(path: Path) -> None:
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")  # the first entry of the zip directory
    content[entry + 9] |= 0x08  # the flag for a UTF-8 name
    content[entry + 46] = 0xFF  # its first character
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="damaged or not a test-file file"):
        npz.read(path, FORMAT)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.data())
def test_a_flipped_byte_is_detected_or_harmless(path: Path, data: st.DataObject) -> None:
    content = bytearray(path.read_bytes())
    index = data.draw(st.integers(0, len(content) - 1))
    content[index] ^= data.draw(st.integers(1, 255))
    changed = path.with_name("changed.npz")
    changed.write_bytes(content)
    try:
        header, arrays = npz.read(changed, FORMAT)
    except DatasetError:
        return
    # Some bytes of the zip container (times, attributes) do not affect the content.
    assert header == HEADER
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "foreign.npz", x=np.zeros(3))
    for name, message in [
        ("none.npz", "No such file"),
        ("text.npz", "not a test-file file"),
        ("foreign.npz", "it has no header"),
        ("", "is a folder, not a file"),
    ]:
        with pytest.raises(DatasetError, match=message):
            npz.read(tmp_path / name, FORMAT)
