"""Protocols, references, environments of one's own, and notices."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from scipy.stats import norm

import qrl
from qrl.agents.evaluation.evaluator import Evaluator, Subject
from qrl.agents.evaluation.metrics import CAUSES
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import TablePolicy
from qrl.agents.planning.rollouts import outcome, play_tasks
from qrl.agents.scaling import Scaling
from qrl.common.errors import ConfigError
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError, LayoutError, WorldError
from qrl.envs.layout import Layout
from qrl.errors import ShapeError
from qrl.q_models import LatentQModel
from tests.agents.goal_envs import Ring
from tests.agents.runs.running import run_to_end
from tests.agents.worlds import corridor, ring_data, small_settings, without_layout


@pytest.fixture(scope="module")
def doors() -> Dataset:
    return collect(CollectorSettings(trajectories=60))


@pytest.mark.parametrize("protocol", ["paper", "exhaustive"])
def test_the_oracle_is_perfect_and_chance_is_not(doors: Dataset, protocol: Any) -> None:
    evaluator = Evaluator(doors, protocol)
    oracle = evaluator.score(evaluator.reference("oracle"))
    assert (oracle.success_rate, oracle["spl"], oracle["excess_steps"]) == (1, 1, 0)
    assert {oracle[f"failures.{cause}"] for cause in CAUSES} == {0}
    assert oracle["distances.reachable.absolute_error"] == 0
    random = evaluator.score(evaluator.reference("random"))
    assert random.success_rate is not None
    assert random.success_rate < 0.5
    assert random["tasks"] is not None
    assert random["failures.cap"] == random["tasks"] - round(random.success_rate * random["tasks"])
    assert random["distances.reachable.pairs"] is None
    assert random.errors_by_distance == []
    graph = evaluator.score(evaluator.reference("empirical-graph"))
    assert graph.success_rate is not None
    assert random.success_rate < graph.success_rate < 1


def test_what_the_protocols_are(doors: Dataset) -> None:
    paper, exhaustive = Evaluator(doors, "paper"), Evaluator(doors)
    assert exhaustive.protocol == "exhaustive"
    sampled, every = (evaluator.score(evaluator.reference("oracle")) for evaluator in (paper, exhaustive))
    assert (sampled["tasks"], sampled.max_steps, every["tasks"]) == (50, 300, 9180)
    assert sampled.success_interval == pytest.approx((50 / (50 + norm.ppf(0.975) ** 2), 1))  # Wilson's, by hand
    assert every.success_interval is None
    assert every["all_pairs.tasks"] == 241 * 240
    assert every["ranking_accuracy"] == every["all_pairs.unseen.success_rate"] == 1
    assert sampled["all_pairs.tasks"] is sampled["all_pairs.seen.tasks"] is sampled["ranking_accuracy"] is None
    assert sum(row["tasks"] or 0 for row in every.success_by_distance) == 9180
    assert [row["success_rate"] for row in every.success_by_distance] == [1] * len(every.success_by_distance)
    assert sum(row["pairs"] or 0 for row in every.errors_by_distance) == every["distances.reachable.pairs"]
    assert every.errors_by_distance[0]["low"] == 0


def test_sampled_tasks_follow_the_seed(doors: Dataset) -> None:
    tasks = [Evaluator(doors, "paper", 20, seed) for seed in (1, 1, 2)]
    assert tasks[0].starts.tolist() == tasks[1].starts.tolist()
    assert tasks[0].goals.tolist() != tasks[2].goals.tolist()


def test_both_protocols_follow_one_policy_table(trained: Path) -> None:
    """Each sampled episode comes out as the same task in the exhaustive protocol."""
    agent, dataset = qrl.load(trained), Dataset.load(trained / "dataset.npz")
    paper, exhaustive = Evaluator(dataset, "paper", 100), Evaluator(dataset, "exhaustive")
    first, second = paper.agent(agent, "x"), exhaustive.agent(agent, "x")
    truth = paper.truth
    assert truth is not None
    assert isinstance(second.policy, TablePolicy)
    expected = second.policy.walk(truth, paper.starts, paper.goals)
    assert 0 < expected.success.mean() < 1
    played = outcome(play_tasks(truth.layout, first.policy, paper.starts, paper.goals))
    for field in ("success", "steps", "cause"):
        np.testing.assert_array_equal(getattr(played, field), getattr(expected, field))
    assert paper.score(first).success_rate == expected.success.mean()


def test_unreachable_goals_are_apart() -> None:
    layout = Layout("########\n#S.G#.G#\n########")
    rows = layout.observations[[0, 1, 2]]
    dataset = Dataset.from_arrays(rows, [1, 1], [2], num_actions=4, layout=layout)
    evaluator = Evaluator(dataset)
    oracle = evaluator.score(evaluator.reference("oracle"))
    assert (oracle["tasks"], oracle["unreachable_tasks"], oracle.success_rate) == (1, 1, 1)
    assert oracle["distances.unreachable.pairs"] == 2 * 3 * 2 * 4  # between the two parts, both ways, for every action
    divided = Layout("#####\n#S.##\n###G#\n#####")
    closed = Dataset.from_arrays(divided.observations[:2], [1], [1], num_actions=4, layout=divided)
    with pytest.raises(LayoutError, match="no goal can be reached"):
        Evaluator(closed)


def test_an_environment_of_ones_own() -> None:
    evaluator = Evaluator(ring_data(), env=Ring(), episodes=10)
    assert evaluator.protocol == "paper"
    assert any("no world" in notice for notice in evaluator.notices)
    assert [subject.name for subject in evaluator.references()] == ["random", "empirical-graph"]
    graph = evaluator.score(evaluator.reference("empirical-graph"))
    assert (graph.success_rate, graph["tasks"], graph["spl"]) == (1, 10, None)
    random = evaluator.score(evaluator.reference("random"))
    assert random.success_rate is not None
    assert random.success_rate < 1
    assert (random["failures.ended"] or 0) > 0


def test_the_agent_decides_where_the_data_has_no_state(trained: Path) -> None:
    evaluator = Evaluator(Dataset.load(trained / "dataset.npz"))
    agent = qrl.load(trained)
    policy = evaluator.agent(agent, "x").policy
    assert isinstance(policy, TablePolicy)
    rng = np.random.default_rng(0)
    for observation, goal in rng.normal(size=(20, 2, 18)):
        assert policy.act(observation, goal) == agent.act(observation, goal)


def test_an_environment_with_a_cap_of_its_own() -> None:
    evaluator = Evaluator(ring_data(30), env=gymnasium.wrappers.TimeLimit(Ring(30), 9), episodes=20)
    assert evaluator.score(evaluator.reference("empirical-graph"))["failures.cap"] != 0
    assert "the environment itself ends episodes after 9 of 300 steps" in evaluator.notices


def test_a_trained_agent_in_an_environment_that_is_not_ours(tmp_path: Path) -> None:
    """Collected, trained and planned in a world without a layout, with goals that are states."""
    env, rng = Ring(), np.random.default_rng(0)
    actions = rng.integers(2, size=400)
    states = np.concatenate([[0], np.cumsum(actions)]) % 6
    rows = [env.describe(int(state)) for state in states]
    dataset = Dataset.from_arrays(rows, actions, [400], num_actions=3)
    settings = small_settings(
        tmp_path / "run",
        model={"name": "unconstrained-state-disc", "params": {"hidden_sizes": [32]}},
        learner={"min_steps": 300, "batch_size": 128, "lr": 1e-2},
        checkpoint_every=300,
    )
    run_to_end(settings, dataset=dataset)
    evaluator = Evaluator(dataset, env=env)
    results = evaluator.score(evaluator.agent(qrl.load(tmp_path / "run"), "ring"))
    random = evaluator.score(evaluator.reference("random"))
    assert results.success_rate is not None
    assert random.success_rate is not None
    # The action that was never tried may look good somewhere, but chance is far worse.
    assert results.success_rate > random.success_rate + 0.3
    assert results["axioms.identity_error"] is not None


def test_states_that_the_data_has_not_seen() -> None:
    evaluator = Evaluator(ring_data(5), env=Ring(6), episodes=30)  # all states but one differ
    graph = evaluator.score(evaluator.reference("empirical-graph"))
    assert graph.success_rate is not None
    assert graph.success_rate < 0.7


def test_without_any_world_only_the_axioms_are_measured(trained: Path) -> None:
    evaluator = Evaluator(without_layout(Dataset.load(trained / "dataset.npz")))
    assert evaluator.protocol is None
    assert len(evaluator.notices) == 2
    assert evaluator.references() == []
    results = evaluator.score(evaluator.agent(qrl.load(trained), "mine"))
    assert (results.success_rate, results["distances.reachable.pairs"]) == (None, None)
    assert results["axioms.triangle_violations"] == 0


def test_a_dataset_of_many_states_is_not_tabulated(monkeypatch: pytest.MonkeyPatch, trained: Path) -> None:
    for module in ("evaluation.evaluator", "planning.empirical_graph"):
        monkeypatch.setattr(f"qrl.agents.{module}.MAX_TABLE", 3)
    doors = Dataset.load(trained / "dataset.npz")
    mine = without_layout(doors)
    env = gymnasium.make("qrl.envs:qrl/OneWayDoors-v0", layout="traps", max_steps=300)
    evaluator = Evaluator(mine, env=env, episodes=5, max_steps=10)
    assert [subject.name for subject in evaluator.references()] == ["random"]
    agent = qrl.load(trained)
    subject = evaluator.agent(agent, "mine")
    assert subject.policy is agent
    assert evaluator.score(subject)["tasks"] == 5
    with pytest.raises(DatasetError, match="at most 3 distinct states"):
        evaluator.reference("empirical-graph")
    assert any("more than 3 distinct states" in notice for notice in evaluator.notices)
    large = Evaluator(doors, max_steps=10)  # as few as show that every step asks the agent
    assert large.protocol == "paper"  # not all pairs
    assert large.score(large.agent(agent, "x"))["tasks"] == 50
    with pytest.raises(ConfigError, match="needs at most 3 states"):
        Evaluator(doors, "exhaustive")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"protocol": "papr"}, ConfigError, "unknown protocol 'papr' \\(did you mean 'paper'"),
        ({"episodes": 5}, ConfigError, "needs the paper's protocol"),
        ({"protocol": "paper", "episodes": 0}, ConfigError, "at least 1"),
        ({"env": Ring(), "protocol": "exhaustive"}, ConfigError, "walks a world"),
        ({"env": Ring()}, WorldError, "has 3 actions, but the data has 4"),
    ],
)
def test_mistakes(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Evaluator(corridor(), **options)


def test_mistakes_with_references_and_agents(trained: Path) -> None:
    evaluator = Evaluator(ring_data(), env=Ring())
    with pytest.raises(DatasetError, match="the oracle needs to know the world"):
        evaluator.reference("oracle")
    with pytest.raises(ConfigError, match="unknown reference 'oracel'"):
        evaluator.reference("oracel")
    with pytest.raises(
        ShapeError, match="takes 18-dimensional observations and has 4 actions, but the dataset has 2 and 3"
    ):
        evaluator.agent(qrl.load(trained), "x")
    with pytest.raises(WorldError, match="the paper protocol needs a world"):
        Evaluator(ring_data(), "paper")


def violating_subject(evaluator: Evaluator, agent: Agent, declared: bool) -> Subject:
    """A model that breaks the triangle inequality and d(x, x) = 0, and may declare that it does neither."""

    class Broken(torch.nn.Module):
        input_size = 16
        guaranteed_quasimetric = declared

        def forward(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return 1 + 1000 * (u - v).square().sum(-1)

    model = LatentQModel(agent.model.spec, Broken(), hidden_sizes=(8,))  # type: ignore[arg-type]
    return evaluator.agent(Agent(model, Scaling.fit(torch.zeros(1, 18), standardize=False)), "broken")


def test_a_declared_quasimetric_that_violates_the_axioms_is_reported(trained: Path) -> None:
    evaluator = Evaluator(Dataset.load(trained / "dataset.npz"))
    agent = qrl.load(trained)
    torch.manual_seed(0)
    evaluation = evaluator.evaluate(violating_subject(evaluator, agent, declared=True), references=False)
    triangle, identity = evaluation.notices
    violations = evaluation["axioms.triangle_violations"]
    assert violations is not None
    assert triangle == (
        f"broken declares guaranteed_quasimetric but violates the triangle inequality in {violations:.1%} of random "
        "triples"
    )
    assert identity == "broken declares guaranteed_quasimetric but violates d(x, x) = 0 by 1 on average"
    honest = evaluator.evaluate(violating_subject(evaluator, agent, declared=False), references=False)
    assert honest.notices == []
    assert evaluator.evaluate(evaluator.agent(agent, "iqe"), references=False).notices == []
