"""In a large world nothing needs all pairs of states: collection, training, its scores and sampled evaluation."""

from pathlib import Path

import pytest

import qrl
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.runs.run import Run
from qrl.common.errors import ConfigError
from qrl.envs import ground_truth as ground_truth_module
from qrl.envs.ground_truth import GroundTruth
from tests.agents.runs.running import finish
from tests.agents.worlds import small_settings


@pytest.fixture
def no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    ground_truth_module._cached.cache_clear()  # of what other tests have tabulated
    modules = "envs.ground_truth", "agents.evaluation.evaluator", "agents.evaluation.training_scores"
    for module in (*modules, "agents.planning.empirical_graph"):
        monkeypatch.setattr(f"qrl.{module}.MAX_TABLE", 3)

    def distances(self: GroundTruth) -> None:
        raise AssertionError("all pairs were asked for")

    monkeypatch.setattr(GroundTruth, "distances", property(distances))
    monkeypatch.setattr("qrl.agents.planning.planner.all_steps_to_goal", distances)


@pytest.mark.usefixtures("no_tables")
def test_collection_training_and_evaluation(tmp_path: Path) -> None:
    world = {"name": "layout", "layout": "traps"}
    dataset = qrl.collect(world=world, trajectories=40, max_steps=30)
    run = Run.start(small_settings(tmp_path / "run", evaluate_every=20), dataset=dataset)
    assert 0 <= finish(run)[-1]["success_rate"] <= 1
    trained = TrainedAgent.open(run)
    evaluator = Evaluator(trained.dataset)
    assert evaluator.protocol == "paper"
    evaluation = trained.evaluate(evaluator)
    assert [result.name for result in evaluation.references] == ["oracle", "random"]
    oracle = evaluation.references[0]
    assert (oracle.success_rate, oracle["spl"], oracle["tasks"]) == (1, 1, 50)
    assert sum(row["tasks"] or 0 for row in evaluation.results.success_by_distance) == 50
    assert evaluation.results["axioms.triangle_violations"] == 0
    with pytest.raises(ConfigError, match="needs at most 3 states"):
        Evaluator(trained.dataset, "exhaustive")


def test_the_same_data_with_and_without_tables(request: pytest.FixtureRequest) -> None:
    expected = qrl.collect("traps", trajectories=40).content_hash
    request.getfixturevalue("no_tables")
    assert qrl.collect("traps", trajectories=40).content_hash == expected
