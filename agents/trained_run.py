"""A training run opened for evaluation: its agent, its data, and what a reader of the results should know."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from agents.agent import Agent, load_agent
from agents.checkpoint import Checkpoint
from agents.results import Results
from agents.run_folder import RunFolder
from envs.dataset import Dataset
from qrl.common.errors import DatasetError


@dataclass(frozen=True)
class TrainedRun:
    folder: RunFolder
    agent: Agent
    checkpoint: Checkpoint
    dataset: Dataset
    notices: list[str]

    @property
    def name(self) -> str:
        return self.folder.path.resolve().name

    @classmethod
    def open(
        cls, run: str | Path, checkpoint: str | Path | None = None, dataset: str | Path | None = None, seed: int = 0
    ) -> "TrainedRun":
        """`dataset`: a file to take in place of the run's own."""
        folder = RunFolder.existing(run)
        agent, made = load_agent(folder, checkpoint, seed)
        notices = []
        if not folder.complete.exists():
            num_steps = folder.read_facts().get("num_steps", "?")
            notices.append(f"{run} is not finished: this is its checkpoint at step {made.step} of {num_steps}")
        data = cls._load_dataset(folder, dataset)
        if data.content_hash != made.dataset_hash:
            if dataset is None:
                raise DatasetError(
                    f"{folder.find_dataset()} has changed since {run} was trained on it; "
                    "to evaluate on it as it is now, name it with --dataset"
                )
            notices.append(f"{run} was trained on other data than {dataset}")
        return cls(folder, agent, made, data, notices)

    @staticmethod
    def _load_dataset(folder: RunFolder, named: str | Path | None) -> Dataset:
        if named is not None:
            return Dataset.load(named)
        path = folder.find_dataset()
        if not path.is_file():
            raise DatasetError(f"{path}, the dataset of {folder.path}, is missing; name its new place with --dataset")
        return Dataset.load(path)

    @property
    def facts(self) -> dict[str, Any]:
        """The keys of `Evaluation` that tell of the run."""
        return {
            "run": str(self.folder.path),
            "model": self.checkpoint.model_name,
            "step": self.checkpoint.step,
            "complete": self.folder.complete.exists(),
        }

    def log(self, results: Results) -> None:
        """Write the numbers into the run's TensorBoard, at the checkpoint's step."""
        with closing(SummaryWriter(str(self.folder.tensorboard))) as writer:
            for key, value in results.scalars().items():
                writer.add_scalar(f"planning/{key}", value, self.checkpoint.step)
