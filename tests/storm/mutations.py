"""Damage to files: to their bytes, to their text, and to their structure, so that it gets past the first check.

A mutation is a function of a random generator and the bytes of a file. Those of a format know its structure.
"""

import contextlib
import csv
import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from qrl.envs.npz import Format, content_hash

Mutation = Callable[[random.Random, bytes], bytes]

# Values that a file should not have: written as they stand, in JSON, YAML, CSV and text.
HOSTILE = [
    *("NaN", ".nan", "Infinity", "-.inf", "-1", "0", "1e400", "-0.0", str(2**63), str(2**200), "9" * 5000, "0x10"),
    *("null", "true", "off", '""', '"\\u0000"', '"\\ud800"', "[]", "{}", "[[[[1]]]]", '{"a": {"b": []}}', "1,2", "~"),
    *("../../etc/passwd", "!!python/object:os.system", '"' + "x" * 3000 + '"', "1:30", "2024-02-31", "=1+1"),
]

# Bytes


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def zero_block(rng: random.Random, data: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:start] + bytes(end - start) + data[end:]


def repeat_block(rng: random.Random, data: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:end] + data[start:end] * rng.choice([1, 1, 2, 100]) + data[end:]


def remove_block(rng: random.Random, data: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:start] + data[end:]


def insert_garbage(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    garbage = rng.choice([rng.randbytes(rng.choice([1, 16, 4096])), b"\0", b"\xed\xa0\x80", b"\xff\xfe", b"\xef\xbb\xbf"])
    return data[:start] + garbage + data[start:]


def swap_blocks(rng: random.Random, data: bytes) -> bytes:
    size = rng.randint(1, max(1, len(data) // 4))
    first, second = sorted(rng.randrange(max(1, len(data) - size)) for _ in range(2))
    second = max(second, first + size)
    return data[:first] + data[second : second + size] + data[first + size : second] + data[first : first + size] + data[second + size :]


def odd_number(rng: random.Random, data: bytes) -> bytes:
    """A 32-bit number that is not finite, or huge."""
    at = 4 * rng.randrange(len(data) // 4)
    return data[:at] + struct.pack("<f", rng.choice([float("nan"), float("inf"), 3e38, -1.0])) + data[at + 4 :]


def _block(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data))
    return start, min(len(data), start + rng.choice([1, 4, 64, 512, len(data)]))


BYTES: list[Mutation] = [flip_bits, truncate, zero_block, repeat_block, remove_block, insert_garbage, swap_blocks]

# Text: fields and lines


def replace_field(rng: random.Random, data: bytes) -> bytes:
    """A hostile value in place of a word or a number."""
    return _between(rng, data, lambda _: rng.choice(HOSTILE).encode())


def swap_fields(rng: random.Random, data: bytes) -> bytes:
    other = rng.choice(data.split() or [b""])
    return _between(rng, data, lambda _: other)


def change_lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    change = rng.choice(["remove", "repeat", "swap", "indent", "long", "carriage returns"])
    if change == "remove":
        del lines[at]
    elif change == "repeat":
        lines[at:at] = [lines[at]] * rng.choice([1, 1000])
    elif change == "swap":
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif change == "indent":
        lines[at] = b"  " + lines[at]
    elif change == "long":
        lines[at] += b"x" * 200_000
    else:
        lines = [line + b"\r" for line in lines]
    return b"\n".join(lines)


def _between(rng: random.Random, data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change one run of letters, digits and signs."""
    starts = [at for at in range(len(data)) if _in_word(data, at) and not _in_word(data, at - 1)]
    if not starts:
        return data + change(b"")
    start = end = rng.choice(starts)
    while end < len(data) and _in_word(data, end):
        end += 1
    return data[:start] + change(data[start:end]) + data[end:]


def _in_word(data: bytes, at: int) -> bool:
    return at >= 0 and (chr(data[at]).isalnum() or data[at] in b".-+_")


TEXT: list[Mutation] = [*BYTES, replace_field, replace_field, swap_fields, change_lines]

# Structures: JSON and YAML

_MARK = "@hostile@"


def restructure(rng: random.Random, content: Any) -> str:
    """JSON of the content with one of its values replaced, removed, renamed or given twice."""
    parents = list(_containers(content))
    parent = rng.choice(parents)
    keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
    change = rng.choice(["replace", "replace", "replace", "remove", "rename", "twice", "nest", "whole"])
    if change == "whole" or not keys:
        return rng.choice(HOSTILE)
    key = rng.choice(keys)
    if change == "remove":
        del parent[key]
    elif change == "rename" and isinstance(parent, dict):
        parent[rng.choice([f"{key}x", "", "\0", key.upper(), "__class__"])] = parent.pop(key)
    elif change == "nest":
        parent[key] = rng.choice([[parent[key]], {"a": parent[key]}])
    elif change == "twice" and isinstance(parent, dict):
        text = json.dumps(parent[key])
        parent[key] = _MARK
        return json.dumps(content).replace(f'"{_MARK}"', f"{text}, {json.dumps(key)}: {rng.choice([text, '1'])}")
    else:
        parent[key] = _MARK
    return json.dumps(content).replace(f'"{_MARK}"', rng.choice(HOSTILE))


def _containers(content: Any) -> Any:
    if isinstance(content, dict | list) and content:
        yield content
        for inner in content.values() if isinstance(content, dict) else content:
            yield from _containers(inner)


def change_json(rng: random.Random, data: bytes) -> bytes:
    content = json.loads(data)
    return (restructure(rng, content) if isinstance(content, dict | list) else rng.choice(HOSTILE)).encode()


def change_yaml(rng: random.Random, data: bytes) -> bytes:
    return restructure(rng, yaml.safe_load(data)).encode()  # flow style: JSON is YAML


def bomb(rng: random.Random, data: bytes) -> bytes:
    """YAML that grows when it is read, in place of the file or of one of its values."""
    aliases = "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, rng.randint(5, 30)))
    bombs = [
        "a0: &a0 [x, x, x]\n" + aliases,
        "a: &a [*a]\n",
        "a: &a {b: *a}\n",
        "<<: &a {<<: *a}\n",
        "a: " + "[" * 20_000,
        "a: " + "{a: " * 3_000,
        "".join(f"k{number}: 1\n" for number in range(60_000)),
        "a: " + "9" * 100_000 + "\n",
        "? " * 5_000,
        "a: !!binary " + "A" * 50_000,
        "--- a\n--- b\n",
    ]
    return rng.choice([data, b""]) + rng.choice(bombs).encode()


JSON: list[Mutation] = [*TEXT, change_json, change_json, change_json, change_json]
YAML: list[Mutation] = [*TEXT, change_yaml, change_yaml, change_yaml, change_yaml, bomb]

# Tables


def change_table(rng: random.Random, data: bytes) -> bytes:
    rows = list(csv.reader(io.StringIO(data.decode())))
    row, column = rng.randrange(len(rows)), rng.randrange(len(rows[0]))
    change = rng.choice(["cell", "cell", "cell", "column", "row", "order", "quote"])
    if change == "cell":
        rows[row][column] = rng.choice(HOSTILE)
    elif change == "column":
        for line in rows:
            del line[column]
    elif change == "row":
        rows.insert(row, rows[rng.randrange(len(rows))])
    elif change == "order":
        rng.shuffle(rows)
    else:
        rows[row][column] = '"\n'
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


CSV: list[Mutation] = [*TEXT, change_table, change_table, change_table, change_table]

# Containers, whose checksums are recomputed


def change_npy(rng: random.Random, data: bytes) -> bytes:
    """The header of an array, padded to its length again, or its values."""
    length = struct.unpack("<H", data[8:10])[0]
    header, values = data[10 : 10 + length], data[10 + length :]
    if rng.random() < 0.4:
        return data[: 10 + length] + rng.choice(BYTES)(rng, values or b"\0")
    header = rng.choice([*TEXT, _shape])(rng, header.rstrip()).ljust(length - 1) + b"\n"
    return data[:8] + struct.pack("<H", len(header) % 2**16) + header + values


def _shape(rng: random.Random, header: bytes) -> bytes:
    old = header[header.index(b"(") : header.index(b")") + 1]
    new = rng.choice(["()", "(-1,)", f"({2**62}, 8)", "(0, 0)", "(3, 2)", "(1e3,)", "('a',)", "(" * 300, f"({10**30},)"])
    return header.replace(old, new.encode())


def change_member(rng: random.Random, data: bytes) -> bytes:
    """One array of an .npz, or its list of arrays."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at = rng.randrange(len(members))
    name, content = members[at]
    change = rng.choice(["content", "content", "content", "header", "header", "remove", "rename", "twice", "compress"])
    if change == "header":
        at = next(number for number, (other, _) in enumerate(members) if other == "header.npy")
        members[at] = ("header.npy", npy_text(change_json(rng, npy_data(members[at][1]))))
    elif change == "remove":
        del members[at]
    elif change == "rename":
        members[at] = (rng.choice(["../x.npy", "/", "a\0b", f"{name}y", members[0][0]]), content)
    elif change == "twice":
        members.append(members[at])
    elif change == "content":
        members[at] = (name, change_npy(rng, content))
    return zipped(members, zipfile.ZIP_DEFLATED if change == "compress" else zipfile.ZIP_STORED)


def zipped(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    import warnings

    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", compression) as archive:
        warnings.simplefilter("ignore")  # a name twice
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def npy_data(member: bytes) -> bytes:
    return member[10 + struct.unpack("<H", member[8:10])[0] :]


def npy_text(text: bytes) -> bytes:
    """A text as an array of bytes."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(text)},), }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + text


def change_tensors(rng: random.Random, data: bytes) -> bytes:
    """The JSON header of a safetensors file, the metadata in it, or the numbers."""
    length = struct.unpack("<Q", data[:8])[0]
    header, numbers = data[8 : 8 + length], data[8 + length :]
    change = rng.choice(["header", "metadata", "metadata", "metadata", "numbers", "numbers"])
    if change == "numbers":
        return data[: 8 + length] + rng.choice([flip_bits, zero_block, odd_number])(rng, numbers)
    if change == "header":
        header = rng.choice([change_json, replace_field])(rng, header)
    else:
        content = json.loads(header)
        metadata = content["__metadata__"]
        key = rng.choice(list(metadata))
        change_value = change_json if metadata[key].startswith("{") else replace_field
        metadata[key] = change_value(rng, metadata[key].encode()).decode("utf-8", "replace")
        header = json.dumps(content).encode()
    return struct.pack("<Q", len(header)) + header + numbers


def reseal(rng: random.Random, data: bytes) -> bytes:
    """A data file with other content and the hash of that: damage that only the checks of the content can find."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: np.array(file[name]) for name in file.files}
    header = json.loads(arrays.pop("header").tobytes())
    name = rng.choice(list(arrays))
    if rng.random() < 0.5:
        arrays[name] = _odd_array(rng, arrays[name])
    else:
        with contextlib.suppress(ValueError):
            changed = json.loads(restructure(rng, json.loads(json.dumps(header))))
            header = changed if isinstance(changed, dict) else header
    kind = Format(header.pop("format", ""), header.pop("format_version", 1), {})
    header.pop("content_hash", None)
    with contextlib.suppress(ValueError):  # a header that is no JSON has no hash
        header["content_hash"] = content_hash(kind, header, arrays)
    members = {"header": np.frombuffer(json.dumps({**header, "format": kind.name, "format_version": kind.version}).encode(), np.uint8)}
    sealed = io.BytesIO()
    np.savez(sealed, allow_pickle=False, **members, **arrays)
    return sealed.getvalue()


def _odd_array(rng: random.Random, array: NDArray[Any]) -> NDArray[Any]:
    change = rng.choice(["value", "value", "value", "shorter", "longer", "empty", "type", "shape"])
    if change == "value" and array.size:
        odd = np.array([0, -1, 1, 2**31 - 1, -(2**31), np.nan, np.inf, 1e30])
        with np.errstate(all="ignore"):
            array.flat[rng.randrange(array.size)] = odd[rng.randrange(len(odd))].astype(array.dtype)
        return array
    if change == "type":
        return array.astype(rng.choice([np.float64, np.int8, np.complex64]))
    changed = {"shorter": array[:-1], "longer": np.concatenate([array, array[-1:]]), "empty": array[:0]}
    return changed.get(change, array.reshape(-1, *array.shape[2:]))


def inside_gzip(rng: random.Random, data: bytes) -> bytes:
    return gzip.compress(rng.choice(TEXT)(rng, gzip.decompress(data)))


NPY: list[Mutation] = [*BYTES, *[change_npy] * 7]
NPZ: list[Mutation] = [*BYTES, *[change_member] * 7, *[reseal] * 4]
TENSORS: list[Mutation] = [*BYTES, *[change_tensors] * 7]
GZIP: list[Mutation] = [*BYTES, *[inside_gzip] * 7]
RESEALED = [reseal.__name__]  # other content of a hashed file, as its hash says
