"""Damage to the structure of JSON, YAML and CSV."""

import csv
import io
import json
import random
from collections.abc import Iterator
from typing import Any

import yaml

from tests.storm.mutations import HOSTILE, TEXT, Mutation

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
        parent[rng.choice([f"{key}x", "", "\0", f"{key}".upper(), "__class__"])] = parent.pop(key)
    elif change == "nest":
        parent[key] = rng.choice([[parent[key]], {"a": parent[key]}])
    elif change == "twice" and isinstance(parent, dict):
        text = json.dumps(parent[key])
        parent[key] = _MARK
        return json.dumps(content).replace(f'"{_MARK}"', f"{text}, {json.dumps(key)}: {rng.choice([text, '1'])}")
    else:
        parent[key] = _MARK
    return json.dumps(content).replace(f'"{_MARK}"', rng.choice(HOSTILE))


def _containers(content: Any) -> Iterator[Any]:
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
    aliases = "".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, rng.randint(5, 30))
    )
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
