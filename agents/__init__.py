"""Learning and planning: from a dataset to a trained agent and its score."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.agent import Agent


def load(run: str | Path, checkpoint: str | Path | None = None, seed: int = 0) -> "Agent":
    """The agent of a training run, from its last checkpoint or another one; finished or not."""
    # Imported only now: the commands' --help imports this package, without torch.
    from agents.agent import load_agent
    from agents.run_folder import RunFolder

    return load_agent(RunFolder.existing(run), checkpoint, seed)[0]
