"""The agent of a training run, opened for evaluation: with its data, and what a reader of its results should know."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from qrl.agents.errors import RunError
from qrl.agents.evaluation.evaluator import Evaluator, Subject
from qrl.agents.evaluation.results import REFERENCES, Evaluation, ProtocolName, Results
from qrl.agents.evaluation.validation import Validation, Validator
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.rollouts import Env
from qrl.agents.runs.checkpoint import Checkpoint, load_checkpoint
from qrl.agents.runs.run import Run
from qrl.common.errors import ConfigError
from qrl.envs.collector import collect_elsewhere
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError


@dataclass(frozen=True)
class TrainedAgent:
    run: Run
    agent: Agent
    checkpoint: Checkpoint
    dataset: Dataset
    notices: list[str]
    path: Path | None = None  # of the checkpoint, where it is not the run's last
    elsewhere: bool = False  # whether it is evaluated in another world than that of its data

    @classmethod
    def open(
        cls,
        run: Run | str | Path,
        checkpoint: str | Path | None = None,
        dataset: str | Path | Dataset | None = None,
        seed: int = 0,
        world: Sequence[str] = (),
    ) -> "TrainedAgent":
        """The agent of a run.

        checkpoint: one that the run kept, not its last. dataset: data to evaluate on, not the run's own.
        world: parameters KEY=VALUE of another world to evaluate in, such as the held-out part of the run's.
        """
        run = Run.open(run.path if isinstance(run, Run) else run, "train-agent")
        agent, metadata = run.load_agent(checkpoint, seed)
        notices = []
        if not run.finished:
            total = "?" if run.num_steps is None else run.num_steps
            notices.append(f"{run.path} is not complete: this is its checkpoint at step {metadata.step} of {total}")
        if agent.learns == "scores":
            notices.append(
                f"{run.path} was trained by {run.settings.learner.name}, which learns scores of actions: it has no "
                "distances to compare with exact ones"
            )
        data = run.dataset if dataset is None else dataset
        if not isinstance(data, Dataset):
            data = Dataset.load(data)
        if data.content_hash != metadata.dataset_hash:
            if dataset is None:
                raise DatasetError(
                    f"{run.dataset_path} has changed since {run.path} was trained on it; "
                    "evaluate-planning --dataset takes it as it is now"
                )
            notices.append(f"{run.path} was trained on other data than {dataset}")
        if world:
            data = collect_elsewhere(data, world)
            notices.append(f"{run.path} was trained in another world than the one with {', '.join(world)}")
        path = None if checkpoint is None else Path(checkpoint)
        trained = cls(run, agent, metadata, data, notices, path, elsewhere=bool(world))
        if data.world is None and trained.held_out is None:
            notices.append(f"{run.path} holds out no trajectories of its data: nothing is validated")
        return trained

    def evaluator(
        self, protocol: ProtocolName | None = None, episodes: int | None = None, seed: int = 0, env: Env | None = None
    ) -> Evaluator:
        """Of its dataset; in another world than that of its data, the empirical graph is still that of its data."""
        memory = self.run.dataset if self.elsewhere else None
        return Evaluator(self.dataset, protocol, episodes, seed, env, memory=memory)

    @property
    def name(self) -> str:
        """The name of the run's folder, unless a reference is called so."""
        return f"{self.run.name} (run)" if self.run.name in REFERENCES else self.run.name

    @property
    def origin(self) -> dict[str, Any]:
        """The keys of `Evaluation` about the run."""
        return {
            "run": str(self.run.path),
            "model": self.checkpoint.model_name,
            "learner": self.run.settings.learner.name,
            "step": self.checkpoint.step,
            "complete": self.run.finished,
        }

    @cached_property
    def held_out(self) -> Dataset | None:
        """Trajectories to validate on: those that the run holds out, or all of other data of an unknown world."""
        if self.dataset.content_hash == self.checkpoint.dataset_hash:
            held_out: Dataset | None = self.run.problem.split(self.run.settings, self.dataset)[1]
            return held_out
        return self.dataset if self.dataset.world is None else None

    @cached_property
    def validation(self) -> Validation | None:
        if self.held_out is None:
            return None
        learner = self.run.settings.learner
        validator = Validator(self.agent.model, self.agent.scaling, self.held_out, learner)
        return validator.measure(load_checkpoint(self.path or self.run.checkpoint)[1])

    def subject(self, evaluator: Evaluator) -> Subject:
        return replace(evaluator.agent(self.agent, self.name), validation=self.validation)

    def evaluate(self, evaluator: Evaluator, subject: Subject | None = None, references: bool = True) -> Evaluation:
        """`subject`: this agent's, if it has been made already, which takes the time of all distances."""
        subject = subject or self.subject(evaluator)
        return evaluator.evaluate(subject, references=references, notices=self.notices, **self.origin)

    def log(self, results: Results) -> None:
        """Show the results in the run's trackers, at the checkpoint's step."""
        from qrl.agents.evaluation.tables import results_text

        title, text = f"evaluation/{results.protocol or 'validation'}", f"```\n{results_text([results])}\n```"
        try:
            with self.run.trackers() as trackers:
                for tracker in trackers:
                    tracker.report(title, text, results.scalars(), self.checkpoint.step)
        except OSError as error:
            raise RunError(f"{error.filename or self.run.path} cannot be written: {error.strerror or error}") from error


def open_agents(runs: Sequence[str | Path], seed: int = 0) -> list[TrainedAgent]:
    """The agents of several runs, to be shown beside each other: their names must differ."""
    agents = [TrainedAgent.open(run, seed=seed) for run in runs]
    if len({trained.name for trained in agents}) < len(agents):
        raise ConfigError("two of the runs have the same name; rename a folder, so that they can be told apart")
    return agents
