"""Notebooks as pages: their cells and saved outputs, without running anything."""

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")  # colors of terminals


def page_of(notebook: Path) -> tuple[str, dict[str, bytes]]:
    """The Markdown of a notebook, and its pictures by file name."""
    pictures: dict[str, bytes] = {}
    parts: list[str] = []
    content = json.loads(notebook.read_text("utf-8"))
    for cell in content["cells"]:
        text = _joined(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif cell["cell_type"] == "code" and text:
            parts.append(_fenced(text, "python"))
            parts += [_output(output, notebook.stem, pictures) for output in cell["outputs"]]
    return "\n\n".join(filter(None, parts)) + "\n", pictures


def _output(output: Mapping[str, Any], stem: str, pictures: dict[str, bytes]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        name = f"{stem}-{len(pictures) + 1}.png"
        pictures[name] = b64decode(_joined(data["image/png"]))
        return f"![Output of the cell above]({name})"
    text = _joined(output.get("text", data.get("text/plain", "")))
    return _fenced(_ESCAPES.sub("", text).rstrip(), "text") if text.strip() else ""


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _fenced(text: str, language: str) -> str:
    ticks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    return f"{ticks}{language}\n{text}\n{ticks}"
