"""How the finished runs of a study are scored, by command."""

import json
import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.graph_metrics import GRAPH_METRICS
from qrl.agents.evaluation.metric import Value, columns
from qrl.agents.evaluation.results import column_values, read_values
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.runs.run import Run
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_text
from qrl.common.json_text import parse_json
from qrl.envs.dataset import Dataset
from qrl.envs.errors import WorldError
from qrl.envs.graphs.dataset import GraphDataset
from qrl.envs.ground_truth import MAX_TABLE

Scores = dict[str, Value]  # by column of results.csv


class Scorer(ABC):
    @abstractmethod
    def check(self, dataset: Any) -> None:
        """Refuse data whose runs cannot be scored, before any is trained."""

    def evaluate(self, run: Run, out: Path) -> None:
        """Score a finished run, and write the results as JSON."""
        text = self._evaluate(run)
        with atomic_write(out) as file:
            file.write(text.encode())

    def read(self, path: Path) -> Scores:
        """The scores in a file of `evaluate`."""
        text = read_text(path)
        try:
            return self._parse(text)
        except (ValueError, TypeError, AttributeError):
            raise FileError(f"{path} is damaged; delete it, and the next sweep evaluates the run again") from None

    @abstractmethod
    def references(self, dataset: Path) -> dict[str, Scores]:
        """The scores of the references on a dataset, by name."""

    @abstractmethod
    def _evaluate(self, run: Run) -> str: ...

    @abstractmethod
    def _parse(self, text: str) -> Scores: ...


class AgentScorer(Scorer):
    """Runs of train-agent: by the exhaustive protocol, as evaluate-planning does."""

    def check(self, dataset: Dataset) -> None:
        world = dataset.world
        if world is not None and world.num_states > MAX_TABLE:
            raise WorldError(
                f"world {world.name} has {world.num_states:,} states: a study plans all tasks, for which it may "
                f"have at most {MAX_TABLE:,}; choose a smaller one, or score single runs with evaluate-planning"
            )

    def references(self, dataset: Path) -> dict[str, Scores]:
        evaluator = Evaluator(Dataset.load(dataset), "exhaustive")
        return {subject.name: column_values(evaluator.score(subject).values) for subject in evaluator.references()}

    def _evaluate(self, run: Run) -> str:
        trained = TrainedAgent.open(run)
        return trained.evaluate(Evaluator(trained.dataset, "exhaustive"), references=False).to_json()

    def _parse(self, text: str) -> Scores:
        return column_values(read_values(text))


class GraphScorer(Scorer):
    """Runs of train-graph: the last row of metrics, which is on the validation pairs at the end of training."""

    def check(self, dataset: GraphDataset) -> None:
        pass  # its validation pairs are always scored

    def references(self, dataset: Path) -> dict[str, Scores]:
        return {}  # nothing is planned

    def _evaluate(self, run: Run) -> str:
        last = run.metrics.last()
        known = {name: last[name] for name in columns(GRAPH_METRICS) if not math.isnan(last.get(name, math.nan))}
        # An infinite estimate of an unreachable pair is correct; JSON has it only as text.
        values = {name: str(value) if math.isinf(value) else value for name, value in known.items()}
        return json.dumps(values, indent=2)

    def _parse(self, text: str) -> Scores:
        values = {name: parse_json(text).get(name) for name in columns(GRAPH_METRICS)}
        return {name: None if value is None else float(value) for name, value in values.items()}


SCORERS: dict[str, Scorer] = {"train-agent": AgentScorer(), "train-graph": GraphScorer()}
