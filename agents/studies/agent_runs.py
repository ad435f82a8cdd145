"""Runs of train-agent in a study: scored by planning all tasks and by comparing distances with the truth."""

from pathlib import Path

from pydantic import ValidationError

from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.results import Evaluation, Results
from qrl.agents.runs.trained_run import TrainedRun, evaluation_of
from qrl.agents.runs.training import AgentTraining
from qrl.agents.studies.kinds import Numbers
from qrl.common.errors import FileError
from qrl.common.files import atomic_write, read_text
from qrl.envs.dataset import Dataset

TRAINING = AgentTraining


def evaluate(run: Path, out: Path) -> None:
    """Score a run by the exhaustive protocol, as evaluate-planning does."""
    trained = TrainedRun.open(run)
    evaluator = Evaluator(trained.dataset, "exhaustive")
    results = evaluator.score(evaluator.agent(trained.agent, trained.name))
    with atomic_write(out) as file:
        file.write(evaluation_of(evaluator, results, trained).model_dump_json(indent=2).encode())


def read_numbers(path: Path) -> Numbers:
    """What a table needs of an evaluation."""
    try:
        return _numbers(Evaluation.model_validate_json(read_text(path)))
    except ValidationError:
        raise FileError(f"{path} is damaged; delete it, and the next sweep evaluates the run again") from None


def references(dataset: Path) -> dict[str, Numbers]:
    """What the truth, chance and the graph of the data reach on the same tasks."""
    evaluator = Evaluator(Dataset.load(dataset), "exhaustive")
    return {each.name: _numbers(evaluator.score(each)) for each in evaluator.references()}


def _numbers(results: Results) -> Numbers:
    found: Numbers = {
        "success_rate": results.success_rate,
        "spl": results.spl,
        "excess_steps": results.excess_steps,
        "all_pairs_success_rate": results.all_pairs.success_rate if results.all_pairs else None,
    }
    if results.distances is not None:
        errors = results.distances.reachable.model_dump()
        found |= {key: errors[key] for key in ("signed_error", "absolute_error", "spearman", "underestimated")}
    if results.axioms is not None:
        axioms = results.axioms.model_dump()
        keys = ("triangle_violations", "triangle_excess", "identity_error", "asymmetry")
        found |= {key: axioms[key] for key in keys}
    return found
