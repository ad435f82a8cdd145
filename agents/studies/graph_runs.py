"""Runs of train-graph in a study: scored on the validation pairs."""

import json
import math
from pathlib import Path

from qrl.agents.runs.graph_training import GraphTraining
from qrl.agents.runs.run_folder import RunFolder
from qrl.agents.runs.settings import GraphTrainSettings
from qrl.agents.studies.kinds import Numbers
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_text

TRAINING = GraphTraining
METRICS = GraphTrainSettings.EVALUATED


def evaluate(run: Path, out: Path) -> None:
    """The last row of metrics is of the end of training: it is the score."""
    last = RunFolder(run).last_metrics()
    # An infinite estimate where there is no way is a good one; JSON has it only as text.
    found = {name: str(last[name]) if math.isinf(last[name]) else last[name] for name in METRICS if name in last}
    with atomic_write(out) as file:
        file.write(json.dumps({name: value for name, value in found.items() if value == value}, indent=2).encode())


def read_numbers(path: Path) -> Numbers:
    try:
        return {name: float(value) for name, value in json.loads(read_text(path)).items() if name in METRICS}
    except (ValueError, AttributeError, TypeError):
        raise FileError(f"{path} is damaged; delete it, and the next sweep evaluates the run again") from None


def references(dataset: Path) -> dict[str, Numbers]:
    """None: nothing is planned."""
    return {}
