"""Damage to the bytes of files, and to the words and lines of text.

A mutation is a function of a random generator and the bytes of a file. `structures` and `containers` know what is in
the file, so that their damage gets past the first check.
"""

import random
import struct
from collections.abc import Callable

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
    garbage = rng.choice(
        [rng.randbytes(rng.choice([1, 16, 4096])), b"\0", b"\xed\xa0\x80", b"\xff\xfe", b"\xef\xbb\xbf"]
    )
    return data[:start] + garbage + data[start:]


def swap_blocks(rng: random.Random, data: bytes) -> bytes:
    size = rng.randint(1, max(1, len(data) // 4))
    first, second = sorted(rng.randrange(max(1, len(data) - size)) for _ in range(2))
    second = max(second, first + size)
    return (
        data[:first]
        + data[second : second + size]
        + data[first + size : second]
        + data[first : first + size]
        + data[second + size :]
    )


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
