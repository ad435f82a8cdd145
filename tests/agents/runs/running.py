"""Helpers for tests of runs."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file

from qrl.agents.runs import checkpoint
from qrl.agents.runs.metrics_file import TIMES
from qrl.agents.runs.run import Run, Scalars
from qrl.agents.runs.settings import RunSettings


def finish(run: Run) -> list[Scalars]:
    """Train to the end."""
    return list(run.train())


def run_to_end(settings: RunSettings, **options: Any) -> list[Scalars]:
    return finish(Run.start(settings, **options))


def stop_at(run: Run, step: int) -> None:
    for _ in run.train(stop=lambda: run.trainer.learner.steps_done >= step):
        pass
    assert run.trainer.learner.steps_done == step


def logged_rows(path: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv, without the column that depends on the time."""
    with (path / "metrics.csv").open() as file:
        return [{key: value for key, value in row.items() if key not in TIMES} for row in csv.DictReader(file)]


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Save a checkpoint again with other metadata or tensors, and with the hashes of these."""
    with safe_open(path, framework="pt") as file:
        content = json.loads(file.metadata()["qrl"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - it is not a dict
    del content["metadata_hash"]
    change(content, tensors)
    content["tensors_hash"] = checkpoint._hash(tensors)
    content["metadata_hash"] = checkpoint._metadata_hash(content)
    save_file(tensors, path, {"qrl": json.dumps(content)})


def checkpoint_bytes(path: Path) -> bytes:
    return (path / "checkpoint.safetensors").read_bytes()
