"""The end state of a run or a study, without what differs between any two of them: times and the name of the folder."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from qrl.agents.runs.metrics_file import TIMES

_TIMES = {*TIMES, "seconds"}


def end_state(folder: Path) -> dict[str, bytes]:
    """Every file below the folder by its relative path, as bytes."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not _ignored(path.relative_to(folder))]
    return {str(path.relative_to(folder)): _timeless(path, folder) for path in files}


def _ignored(path: Path) -> bool:
    return path.name == ".lock" or "tensorboard" in path.parts


def _timeless(path: Path, folder: Path) -> bytes:
    data = path.read_bytes().replace(str(folder.resolve()).encode(), b"FOLDER")
    try:
        if path.suffix == ".csv":
            rows = csv.DictReader(io.StringIO(data.decode()))
            return repr([_without_times(row) for row in rows]).encode()
        if path.name == "COMPLETE":
            return repr(_without_times(json.loads(data))).encode()
    except (ValueError, TypeError, AttributeError, csv.Error):  # damaged: as it is
        return data
    return data


def _without_times(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in _TIMES}


def difference(state: dict[str, bytes], expected: dict[str, bytes]) -> str:
    """What differs, in words; empty if nothing does."""
    missing, added = sorted(expected.keys() - state.keys()), sorted(state.keys() - expected.keys())
    changed = [name for name in expected if name in state and state[name] != expected[name]]
    named = {"missing": missing, "left over": added, "different": changed}
    return "; ".join(f"{what}: {', '.join(names[:5])}" for what, names in named.items() if names)
