"""Damage to what is inside of .npy, .npz, safetensors and gzip files; their checksums and sizes are made to fit."""

import contextlib
import gzip
import io
import json
import random
import struct
import warnings
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrl.envs.npz import Format, content_hash
from tests.storm.mutations import BYTES, TEXT, Mutation, flip_bits, odd_number, replace_field, zero_block
from tests.storm.structures import change_json, restructure


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
    new = rng.choice(
        ["()", "(-1,)", f"({2**62}, 8)", "(0, 0)", "(3, 2)", "(1e3,)", "('a',)", "(" * 300, f"({10**30},)"]
    )
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
    text = json.dumps({**header, "format": kind.name, "format_version": kind.version}).encode()
    sealed = io.BytesIO()
    np.savez(sealed, allow_pickle=False, header=np.frombuffer(text, np.uint8), **arrays)
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


def unseal(rng: random.Random, data: bytes) -> bytes:
    """A checkpoint with other content as release 0.1 wrote it, without hashes: only checks of the content are left."""
    length = struct.unpack("<Q", data[:8])[0]
    header, numbers = json.loads(data[8 : 8 + length]), data[8 + length :]
    metadata = header.pop("__metadata__")
    content = json.loads(metadata["qrl"])
    for key in ("tensors_hash", "metadata_hash"):
        content.pop(key, None)
    content["format_version"] = 1
    change = rng.choice(["metadata", "metadata", "metadata", "numbers", "type", "shape", "remove"])
    name, last = rng.choice(list(header)), max(header, key=lambda key: header[key]["data_offsets"])
    if change == "numbers":
        numbers = rng.choice([flip_bits, zero_block, odd_number])(rng, numbers)
    elif change == "type":
        header[name]["dtype"] = {"F32": "I32"}.get(header[name]["dtype"], "F32")
    elif change == "shape":
        header[name]["shape"] = [1, *header[name]["shape"][::-1]]
    elif change == "remove":
        numbers = numbers[: header.pop(last)["data_offsets"][0]]
    metadata["qrl"] = restructure(rng, content) if change == "metadata" else json.dumps(content)
    text = json.dumps({"__metadata__": metadata, **header}).encode()
    return struct.pack("<Q", len(text)) + text + numbers


def inside_gzip(rng: random.Random, data: bytes) -> bytes:
    return gzip.compress(rng.choice(TEXT)(rng, gzip.decompress(data)))


NPY: list[Mutation] = [*BYTES, *[change_npy] * 7]
NPZ: list[Mutation] = [*BYTES, *[change_member] * 7, *[reseal] * 4]
TENSORS: list[Mutation] = [*BYTES, *[change_tensors] * 7, *[unseal] * 7]
GZIP: list[Mutation] = [*BYTES, *[inside_gzip] * 7]
RESEALED = [reseal.__name__, unseal.__name__]  # other content that no hash contradicts
