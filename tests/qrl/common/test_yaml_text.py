"""YAML that is hostile or merely large is refused at once; anchors, aliases and merge keys work."""

import math
import time
from typing import Any

import pytest
import yaml

from qrl.common import yaml_text
from qrl.common.yaml_text import MAX_BYTES, MAX_DEPTH, MAX_NODES, YamlError, parse_yaml


def alias_bomb(levels: int, width: int = 9) -> str:
    """Of 9 levels: 300 bytes that would expand to 400 million values."""
    lines = ["a0: &a0 [" + ", ".join("x" * width) + "]"]
    lines += [f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * width) + "]" for level in range(1, levels)]
    return "\n".join(lines)


HOSTILE = {
    "alias bomb": (alias_bomb(9), "more than 5,000 values"),
    "alias bomb of mappings": (
        "0: &m0 {x: 1}\n"
        + "".join(f"{n}: &m{n} {{{', '.join(f'k{i}: *m{n - 1}' for i in range(9))}}}\n" for n in range(1, 9)),
        "more than 5,000 values",
    ),
    "self-reference": ("a: &a [*a]", "an alias refers to a collection that contains it"),
    "self-reference of a mapping": ("a: &a {b: {c: *a}}", "an alias refers to a collection that contains it"),
    "self-merge": ("a: &a\n  <<: *a", "an alias refers to a collection that contains it"),
    "60,000 keys": ("".join(f"k{i}: 1\n" for i in range(13_000)), r"more than 5,000 values \(line 2500\)"),
    "long list": (f"[{'1,' * 60_000}]", "more than 5,000 values"),
    "deep list": ("[" * 100_000, "more than 32 nested levels"),
    "deep mapping": ("".join(" " * i + "a:\n" for i in range(400)), "more than 32 nested levels"),
    "deep chain of aliases": (
        "a0: &a0 1\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 400)),
        "more than 32 nested levels",
    ),
    "long integer": ("a: " + "9" * 5_000, "a number of 5,000 characters"),
    "integer of 20 digits": ("a: " + "9" * 20, "an integer of more than 64 bits"),
    "hexadecimal": ("a: 0x" + "f" * 100_000, "a number of 100,002 characters"),
    "sexagesimal": ("a: !!int " + "1:" * 50_000 + "1", "a number of 100,001 characters"),
    "NUL": (r'a: "x\0y"', "a NUL character or half a surrogate pair"),
    "surrogate": (r'a: "\ud800"', "a NUL character or half a surrogate pair"),
    "too many bytes": ("#" * (MAX_BYTES + 1), "more than 131,072 characters"),
    "long undefined alias": ("a: *" + "x" * 100_000, "found undefined alias"),
    "long tag": ("a: !<" + "x" * 100_000 + "> 1", "could not determine a constructor"),
    "long duplicate key": (f"? {'x' * 60_000}\n: 1\n" * 2, "duplicate key 'xxx"),
    "empty integer": ("a: !!int ''", "a value does not fit its type"),
    "false timestamp": ("a: !!timestamp x", "a value does not fit its type"),
    "false boolean": ("a: !!bool x", "a value does not fit its type"),
    "impossible date": ("a: 2024-02-30", "a value does not fit its type"),
    "overflow": ("a: !!float " + "1:" * 190 + "1.5", "a value does not fit its type"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_at_once(name: str) -> None:
    text, message = HOSTILE[name]
    start = time.process_time()
    with pytest.raises(YamlError, match=message) as caught:
        parse_yaml(text)
    assert time.process_time() - start < 1
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &a [1, 2]\nb: *a", {"a": [1, 2], "b": [1, 2]}),
        ("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}", {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}),
        (
            "a: &a {x: 1}\nb: &b {y: 2}\nc: {<<: [*a, *b], z: 3}",
            {"a": {"x": 1}, "b": {"y": 2}, "c": {"x": 1, "y": 2, "z": 3}},
        ),
        # The merged group is used again before it is itself constructed.
        (
            "a: &a {x: 1}\ng:\n  b: &b {<<: *a, x: 2}\nc: {<<: *b}",
            {"a": {"x": 1}, "g": {"b": {"x": 2}}, "c": {"x": 2}},
        ),
        ("a: 9223372036854775807\nb: -0x8000000000000000", {"a": 2**63 - 1, "b": -(2**63)}),
        ("[0, -7, 0x1f, .5, 1., -.inf]", [0, -7, 31, 0.5, 1.0, -math.inf]),
        ("[010, 08, 0b11, 1:30, 1:30.5]", ["010", "08", "0b11", "1:30", "1:30.5"]),
        ("a: 1_000\nb: 3e-4\nc: off\nd: 1.5e+3", {"a": 1000, "b": 3e-4, "c": "off", "d": 1500.0}),
    ],
)
def test_ordinary_text(text: str, value: Any) -> None:
    assert parse_yaml(text) == value


@pytest.mark.parametrize("text", ["9" * 130_000 + "x", "9." + "9" * 130_000 + "x", "0x" + "f" * 130_000 + "x"])
def test_what_is_almost_a_number_is_a_string_at_once(text: str) -> None:
    start = time.process_time()
    assert parse_yaml(text) == text
    assert time.process_time() - start < 1


def test_the_bounds_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(YamlError, match="nested levels"):
        parse_yaml("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    monkeypatch.setattr(yaml_text, "MAX_DEPTH", 3)
    assert parse_yaml("[&a [1], *a]") == [[1], [1]]
    with pytest.raises(YamlError, match="more than 3 nested levels"):
        parse_yaml("[&a [1], [*a]]")
    monkeypatch.setattr(yaml_text, "MAX_NODES", 7)  # one list, two of them, and two values in each
    assert parse_yaml("[&a [1, 2], *a]") == [[1, 2], [1, 2]]
    with pytest.raises(YamlError, match="more than 7 values"):
        parse_yaml("[&a [1, 2], *a, 3]")
    assert MAX_NODES == 5_000


def test_the_expansion_of_aliases_is_counted_as_a_slow_reference_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(value: Any) -> int:
        if isinstance(value, dict):
            return 1 + sum(1 + count(inner) for inner in value.values())
        return 1 + sum(map(count, value)) if isinstance(value, list) else 1

    text = alias_bomb(3, 4) + "\nz: {k: *a2, l: [*a1, *a0]}"
    size = count(yaml.safe_load(text))
    for limit, refused in ((size, False), (size - 1, True)):
        monkeypatch.setattr(yaml_text, "MAX_NODES", limit)
        try:
            parse_yaml(text)
        except YamlError:
            assert refused
        else:
            assert not refused
