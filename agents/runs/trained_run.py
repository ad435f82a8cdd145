"""A training run opened for evaluation: its agent, its data, and what a reader of the results should know."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from qrl.agents.planning.agent import Agent, load_agent
from qrl.agents.runs.checkpoint import Checkpoint
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.results import REFERENCES, Evaluation, Results
from qrl.agents.runs.run_folder import RunFolder
from qrl.agents.runs.settings import TrainSettings, differences
from qrl.envs.dataset import Dataset
from qrl.agents.errors import CheckpointError, RunError
from qrl.envs.errors import DatasetError


@dataclass(frozen=True)
class TrainedRun:
    folder: RunFolder
    agent: Agent
    checkpoint: Checkpoint
    dataset: Dataset
    notices: list[str]

    @property
    def name(self) -> str:
        """That of the folder; the names of references stay theirs."""
        name = self.folder.path.resolve().name
        return f"{name} (run)" if name in REFERENCES else name

    @classmethod
    def open(
        cls, run: str | Path, checkpoint: str | Path | None = None, dataset: str | Path | None = None, seed: int = 0
    ) -> "TrainedRun":
        """`dataset`: a file to take in place of the run's own."""
        folder = RunFolder.existing(run)
        folder.check_kind(TrainSettings)
        agent, made = load_agent(folder, checkpoint, seed)
        config = TrainSettings.from_values(folder.read_config(), str(folder.config)).kept
        changed = differences(made.settings, config, config)
        if changed:
            raise CheckpointError(f"{checkpoint or folder.checkpoint} is not of {run}: {'; '.join(changed)}")
        notices = []
        if not folder.complete.exists():
            num_steps = folder.read_facts().get("num_steps", "?")
            notices.append(f"{run} is not finished: this is its checkpoint at step {made.step} of {num_steps}")
        data = cls._load_dataset(folder, dataset)
        if data.content_hash != made.dataset_hash:
            if dataset is None:
                raise DatasetError(
                    f"{folder.find_dataset()} has changed since {run} was trained on it; "
                    "evaluate-planning --dataset takes it as it is now"
                )
            notices.append(f"{run} was trained on other data than {dataset}")
        return cls(folder, agent, made, data, notices)

    @staticmethod
    def _load_dataset(folder: RunFolder, named: str | Path | None) -> Dataset:
        if named is not None:
            return Dataset.load(named)
        path = folder.find_dataset()
        if not path.is_file():
            raise DatasetError(
                f"{path}, the dataset of {folder.path}, is missing; put it back, "
                "or name its new place with evaluate-planning --dataset"
            )
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
        try:
            with closing(SummaryWriter(str(self.folder.tensorboard))) as writer:
                for key, value in results.scalars().items():
                    writer.add_scalar(f"planning-{results.protocol}/{key}", value, self.checkpoint.step)
        except OSError as error:
            raise RunError(f"{self.folder.tensorboard} cannot be written: {error.strerror or error}") from error


def evaluation_of(
    evaluator: Evaluator, results: Results, trained: TrainedRun | None, beside: Sequence[Results] = ()
) -> Evaluation:
    """Results with all that a reader should know of where they come from, and others `beside` them."""
    return Evaluation(
        **dict(results),
        **(trained.facts if trained else {}),
        dataset=repr(evaluator.dataset),
        dataset_hash=evaluator.dataset.content_hash,
        notices=[*(trained.notices if trained else []), *evaluator.notices],
        references={each.name: each for each in beside},
    )
