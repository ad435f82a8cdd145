"""Protocols and references."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import qrl
from qrl.agents.evaluation.evaluator import Evaluator, planning
from qrl.agents.planning.planner import Outcome, TablePolicy
from qrl.agents.planning.rollouts import outcome, play_tasks
from qrl.common.errors import ConfigError
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError, LayoutError, WorldError
from qrl.envs.layout import Layout
from qrl.errors import ShapeError
from tests.agents.goal_envs import Ring
from tests.agents.worlds import corridor


@pytest.fixture(scope="module")
def doors() -> Dataset:
    return collect(CollectorSettings(trajectories=60))


def ring_data(places: int = 6) -> Dataset:
    """One tour of the ring without staying anywhere."""
    env = Ring(places)
    rows = [env.describe(place % places) for place in range(places + 1)]
    return Dataset.from_arrays(rows, [1] * places, [places], num_actions=3)


@pytest.mark.parametrize("protocol", ["paper", "exhaustive"])
def test_the_oracle_is_perfect_and_chance_is_not(doors: Dataset, protocol: Any) -> None:
    evaluator = Evaluator(doors, protocol)
    oracle = evaluator.score(evaluator.reference("oracle"))
    assert (oracle.success_rate, oracle.spl, oracle.excess_steps) == (1, 1, 0)
    assert set(oracle.failures.values()) == {0}
    assert oracle.distances is not None
    assert oracle.distances.reachable.absolute_error == 0
    random = evaluator.score(evaluator.reference("random"))
    assert random.success_rate is not None
    assert random.success_rate < 0.5
    assert random.failures["cap"] == random.tasks - round(random.success_rate * random.tasks)
    assert random.distances is None
    graph = evaluator.score(evaluator.reference("empirical-graph"))
    assert graph.success_rate is not None
    assert random.success_rate < graph.success_rate < 1


def test_what_the_protocols_are(doors: Dataset) -> None:
    paper, exhaustive = Evaluator(doors, "paper"), Evaluator(doors)
    assert exhaustive.protocol == "exhaustive"
    sampled, all_ = (each.score(each.reference("oracle")) for each in (paper, exhaustive))
    assert (sampled.tasks, sampled.max_steps, all_.tasks) == (50, 300, 9180)
    assert sampled.success_interval == pytest.approx((50 / (50 + norm.ppf(0.975) ** 2), 1))  # Wilson's, by hand
    assert all_.success_interval is None
    assert all_.all_pairs is not None
    assert all_.all_pairs.tasks == 241 * 240
    assert sampled.all_pairs is None
    assert sum(bucket.tasks for bucket in all_.success_by_distance) == 9180


def test_sampled_tasks_follow_the_seed(doors: Dataset) -> None:
    tasks = [Evaluator(doors, "paper", 20, seed) for seed in (1, 1, 2)]
    assert tasks[0].starts.tolist() == tasks[1].starts.tolist()
    assert tasks[0].goals.tolist() != tasks[2].goals.tolist()


def test_both_protocols_follow_one_policy_table(trained: Path) -> None:
    """Each sampled episode comes out as the same task in the exhaustive protocol."""
    agent, dataset = qrl.load(trained), Dataset.load(trained / "dataset.npz")
    paper, exhaustive = Evaluator(dataset, "paper", 200), Evaluator(dataset, "exhaustive")
    first, second = paper.agent(agent, "x"), exhaustive.agent(agent, "x")
    truth = paper.truth
    assert truth is not None
    assert isinstance(second.policy, TablePolicy)
    expected = second.policy.walk(truth, paper.starts, paper.goals)
    assert 0 < expected.success.mean() < 1
    found = outcome(play_tasks(truth.layout, first.policy, paper.starts, paper.goals))
    for field in ("success", "steps", "cause"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    assert paper.score(first).success_rate == expected.success.mean()


def test_planning_by_hand() -> None:
    result = Outcome(
        np.array([True, True, False, False]), np.array([4, 6, 300, 300]), np.array(["", "", "loop", "blocked"])
    )
    found = planning(result, np.array([4, 3, 11, 2], np.float32), [(0, 1), (2, 3), (4, 5), (10, 11)])
    assert found.success_rate == 0.5
    assert found.spl == pytest.approx((1 + 0.5) / 4)
    assert found.excess_steps == pytest.approx(1.5)
    assert found.failures == {"blocked": 1, "loop": 1, "cap": 0, "ended": 0}
    assert [(bucket.low, bucket.high, bucket.tasks, bucket.success_rate) for bucket in found.success_by_distance] == [
        (2, 3, 2, 0.5),
        (4, 5, 1, 1),
        (10, 11, 1, 0),
    ]
    unknown = planning(result, sampled=True)
    assert (unknown.spl, unknown.excess_steps) == (None, None)
    assert unknown.success_interval is not None


def test_unreachable_goals_are_apart() -> None:
    layout = Layout("########\n#S.G#.G#\n########")
    rows = layout.observations[[0, 1, 2]]
    dataset = Dataset.from_arrays(rows, [1, 1], [2], num_actions=4, layout=layout)
    evaluator = Evaluator(dataset)
    oracle = evaluator.score(evaluator.reference("oracle"))
    assert (oracle.tasks, oracle.unreachable_tasks, oracle.success_rate) == (1, 1, 1)
    assert oracle.distances is not None
    assert oracle.distances.unreachable.pairs == 2 * 3 * 2 * 4  # between the two parts, both ways, for every action
    no_way = Layout("#####\n#S.##\n###G#\n#####")
    closed = Dataset.from_arrays(no_way.observations[:2], [1], [1], num_actions=4, layout=no_way)
    with pytest.raises(LayoutError, match="no goal can be reached"):
        Evaluator(closed)


def test_the_default_task_can_be_done_and_given_cells_are_kept() -> None:
    evaluator = Evaluator(corridor(20, "traps"))
    assert evaluator.truth is not None
    start, goal = evaluator.task()
    assert start in evaluator.truth.layout.starts
    assert np.isfinite(evaluator.truth.distances[start, goal])
    x, y = evaluator.truth.layout.cells[goal].tolist()
    assert evaluator.task(goal=(x, y)) == (start, goal)
    assert evaluator.goal_state() == goal
    with pytest.raises(WorldError, match="start and goal are both the cell"):
        evaluator.task((x, y), (x, y))
    with pytest.raises(LayoutError, match=r"\(0, 0\) is a wall"):
        evaluator.task(goal=(0, 0))
    with pytest.raises(LayoutError, match=r"\(99, 0\) is outside"):
        evaluator.task(start=(99, 0))


def test_an_environment_of_ones_own() -> None:
    evaluator = Evaluator(ring_data(), env=Ring(), episodes=10)
    assert evaluator.protocol == "paper"
    assert any("no layout" in notice for notice in evaluator.notices)
    assert [subject.name for subject in evaluator.references()] == ["random", "empirical-graph"]
    graph = evaluator.score(evaluator.reference("empirical-graph"))
    assert (graph.success_rate, graph.tasks, graph.spl) == (1, 10, None)
    random = evaluator.score(evaluator.reference("random"))
    assert random.success_rate is not None
    assert random.success_rate < 1
    assert random.failures["ended"] > 0


def test_what_is_not_in_the_data_is_asked_of_the_agent(trained: Path) -> None:
    evaluator = Evaluator(Dataset.load(trained / "dataset.npz"))
    agent = qrl.load(trained)
    policy = evaluator.agent(agent, "x").policy
    assert isinstance(policy, TablePolicy)
    rng = np.random.default_rng(0)
    for here, goal in rng.normal(size=(20, 2, 18)):
        assert policy.act(here, goal) == agent.act(here, goal)


def test_an_environment_with_a_cap_of_its_own() -> None:
    import gymnasium

    evaluator = Evaluator(ring_data(30), env=gymnasium.wrappers.TimeLimit(Ring(30), 9), episodes=20)
    assert evaluator.score(evaluator.reference("empirical-graph")).failures["cap"] > 0
    assert "the environment ends episodes itself after 9 of 300 steps" in evaluator.notices


def test_a_trained_agent_in_an_environment_that_is_not_ours(tmp_path: Path) -> None:
    """Collected, trained and planned in a world without a layout, with goals that are states."""
    from qrl.agents.runs.training import start, train
    from tests.agents.worlds import small_settings

    env, rng = Ring(), np.random.default_rng(0)
    actions = rng.integers(2, size=400)
    places = np.concatenate([[0], np.cumsum(actions)]) % 6
    rows = [env.describe(int(place)) for place in places]
    Dataset.from_arrays(rows, actions, [400], num_actions=3).save(tmp_path / "ring.npz")
    settings = small_settings(
        tmp_path / "run",
        dataset=str(tmp_path / "ring.npz"),
        model={"name": "unconstrained-state-disc", "params": {"hidden_sizes": [32]}},
        learner={"min_steps": 300, "batch_size": 128, "lr": 1e-2},
    )
    for _ in train(*start(settings)):
        pass
    evaluator = Evaluator(Dataset.load(tmp_path / "ring.npz"), env=env)
    results = evaluator.score(evaluator.agent(qrl.load(tmp_path / "run"), "ring"))
    random = evaluator.score(evaluator.reference("random"))
    assert results.success_rate is not None
    assert random.success_rate is not None
    # The action that was never tried may look good somewhere, but chance is far worse.
    assert results.success_rate > random.success_rate + 0.3
    assert results.axioms is not None


def test_states_that_the_data_has_not_seen() -> None:
    evaluator = Evaluator(ring_data(5), env=Ring(6), episodes=30)  # but for one, other places
    graph = evaluator.score(evaluator.reference("empirical-graph"))
    assert graph.success_rate is not None
    assert graph.success_rate < 0.7


def test_without_any_world_the_axioms_remain(trained: Path) -> None:
    doors = Dataset.load(trained / "dataset.npz")
    lengths = doors.lengths
    mine = Dataset.from_arrays(doors.observations[doors.states], doors.actions, lengths, num_actions=4)
    evaluator = Evaluator(mine)
    assert evaluator.protocol is None
    assert len(evaluator.notices) == 2
    assert evaluator.references() == []
    results = evaluator.score(evaluator.agent(qrl.load(trained), "mine"))
    assert (results.success_rate, results.distances) == (None, None)
    assert results.axioms is not None
    assert results.axioms.triangle_violations == 0


def test_a_dataset_of_many_states_is_not_tabled(monkeypatch: pytest.MonkeyPatch, trained: Path) -> None:
    monkeypatch.setattr("qrl.agents.evaluation.evaluator.MAX_TABLE", 3)
    doors = Dataset.load(trained / "dataset.npz")
    mine = Dataset.from_arrays(doors.observations[doors.states], doors.actions, doors.lengths, num_actions=4)
    import gymnasium

    env = gymnasium.make("qrl.envs:qrl/OneWayDoors-v0", layout="traps", max_steps=300)
    evaluator = Evaluator(mine, env=env, episodes=5)
    assert [subject.name for subject in evaluator.references()] == ["random"]
    agent = qrl.load(trained)
    subject = evaluator.agent(agent, "mine")
    assert subject.policy is agent
    assert evaluator.score(subject).tasks == 5
    with pytest.raises(DatasetError, match="at most 3 distinct states"):
        evaluator.reference("empirical-graph")
    assert any("more than 3 distinct states" in notice for notice in evaluator.notices)
    large = Evaluator(doors)
    assert large.protocol == "paper"  # not all pairs
    assert large.score(large.agent(agent, "x")).tasks == 50
    with pytest.raises(ConfigError, match="needs at most 3 states"):
        Evaluator(doors, "exhaustive")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"protocol": "papr"}, ConfigError, "unknown protocol 'papr' \\(did you mean 'paper'"),
        ({"episodes": 5}, ConfigError, "needs the paper's protocol"),
        ({"protocol": "paper", "episodes": 0}, ConfigError, "at least 1"),
        ({"env": Ring(), "protocol": "exhaustive"}, ConfigError, "walks a layout"),
        ({"env": Ring()}, WorldError, "has 3 actions, but the data has 4"),
    ],
)
def test_mistakes(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Evaluator(corridor(), **options)


def test_mistakes_with_references_and_agents(trained: Path) -> None:
    evaluator = Evaluator(ring_data(), env=Ring())
    with pytest.raises(DatasetError, match="the oracle needs the layout"):
        evaluator.reference("oracle")
    with pytest.raises(ConfigError, match="unknown reference 'oracel'"):
        evaluator.reference("oracel")
    with pytest.raises(ShapeError, match="knows observations of 18 numbers and 4 actions, but the dataset has 2 and 3"):
        evaluator.agent(qrl.load(trained), "x")
    with pytest.raises(WorldError, match="the paper protocol needs a world"):
        Evaluator(ring_data(), "paper")
    with pytest.raises(WorldError, match="gives no frames"):
        evaluator.play(evaluator.reference("random").policy)
    with pytest.raises(WorldError, match="draws its tasks itself"):
        evaluator.play(evaluator.reference("random").policy, goal=(1, 1))
    with pytest.raises(WorldError, match="no world to show"):
        Evaluator(ring_data()).check_play()
    with pytest.raises(WorldError, match="needs a layout"):
        Evaluator(ring_data()).task()
