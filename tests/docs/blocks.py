"""The blocks of code in the pages of the documentation."""

import re
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "plugin" / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name != "report.md"),
]
_FENCE = re.compile(r"^(?P<ticks>```+)(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=ticks)$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """Code of a page; `output` is the text that follows it."""

    language: str
    code: str
    output: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    fences = list(_FENCE.finditer(text))
    following = [
        after["code"] if after["language"] == "text" and not text[before.end() : after.start()].strip() else None
        for before, after in pairwise(fences)
    ]
    return [Block(block["language"], block["code"], output) for block, output in zip_longest(fences, following)]


def pages_with(*languages: str) -> list[Path]:
    return [page for page in PAGES if any(block.language in languages for block in blocks(page))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))
