"""The public functions of `qrl`: each a thin layer over what the commands use."""

from pathlib import Path

from qrl.agents.planning.agent import Agent, load_agent
from qrl.agents.runs.run_folder import RunFolder


def load(run: str | Path, checkpoint: str | Path | None = None, seed: int = 0) -> Agent:
    """The agent of a training run, from its last checkpoint or another one; finished or not."""
    return load_agent(RunFolder.existing(run), checkpoint, seed)[0]
