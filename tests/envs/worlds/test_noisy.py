from pathlib import Path

import numpy as np
import pytest

import qrl
from qrl import make_world
from qrl.agents.evaluation.evaluator import Evaluator
from qrl.agents.evaluation.pictures import evaluation_pictures
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.runs.run import Run
from qrl.envs.card import card
from qrl.envs.collector import BLOCK_EPISODES
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError, WorldError
from qrl.envs.layout import load_layout
from qrl.envs.pictures import coverage_picture
from qrl.envs.world import World
from tests.agents.runs.running import finish
from tests.agents.worlds import small_settings

WORLD = {"name": "noisy", "layout": "traps", "noise": 0.05, "distractors": 3}


def test_observations_are_drawn_anew() -> None:
    world = make_world(**WORLD)  # type: ignore[arg-type]
    assert (world.noisy, world.has_env, world.observation_dim) == (True, False, 21)
    states = np.repeat(np.arange(world.num_states), 400)
    rows = world.observe(states, np.random.default_rng(0))
    assert rows.shape == (len(states), 21)
    assert len(np.unique(rows, axis=0)) == len(rows)
    difference = rows[:, :18] - world.observations[states]
    assert difference.std() == pytest.approx(0.05, rel=0.02)
    assert rows[:, 18:].std() == pytest.approx(1, rel=0.02)
    fewer = world.observe(states[:7], np.random.default_rng(0))
    np.testing.assert_array_equal(fewer, rows[:7])
    quiet = load_layout("traps").world
    np.testing.assert_array_equal(quiet.observe(np.array([3, 1]), np.random.default_rng(0)), quiet.observations[[3, 1]])
    assert world != make_world("noisy", layout="traps", noise=0.06, distractors=3)
    with pytest.raises(WorldError, match="noise and distractors must be at least 0"):
        World("x", [[0]], [[0]], [0], [0], noise=-1)


def test_the_data_has_a_row_for_every_visit(tmp_path: Path) -> None:
    dataset = qrl.collect(world=WORLD, trajectories=30, max_steps=40)
    plain = qrl.collect("traps", trajectories=30, max_steps=40)
    np.testing.assert_array_equal(dataset.actions, plain.actions)
    assert len(np.unique(dataset.states)) == len(dataset.states) == len(plain.states)
    assert len(dataset.observations) == len(dataset.states) + 30  # with the goals
    shown = plain.observations[plain.states]
    assert np.abs(dataset.observations[dataset.states][:, :18] - shown).max() < 0.05 * 6
    goals = plain.observations[plain.goals]
    assert np.abs(dataset.observations[dataset.goals][:, :18] - goals).max() < 0.05 * 6
    more = qrl.collect(world=WORLD, trajectories=BLOCK_EPISODES + 3, max_steps=40)
    assert more.first(30).content_hash == dataset.content_hash
    dataset.save(tmp_path / "d.npz")
    loaded = Dataset.load(tmp_path / "d.npz")
    assert loaded.world == dataset.world
    assert loaded.known_world is None
    lines = card(loaded)
    assert "states of the world not recognized" in lines["states"]
    assert "blocked moves" not in lines
    with pytest.raises(DatasetError, match="coverage cannot be drawn"):
        coverage_picture(loaded, tmp_path / "c.png")
    explored = qrl.collect(world=WORLD, policy="explore", trajectories=5, max_steps=9)
    assert (explored.goals == -1).all()
    assert explored.first(2).num_episodes == 2


def test_training_and_evaluation(tmp_path: Path) -> None:
    dataset = qrl.collect(world=WORLD, trajectories=40, max_steps=30)
    run = Run.start(small_settings(tmp_path / "run", evaluate_every=20), dataset=dataset)
    assert 0 <= finish(run)[-1]["success_rate"] <= 1
    trained = TrainedAgent.open(run)
    for protocol in ("exhaustive", "paper"):
        evaluator = Evaluator(trained.dataset, protocol)
        subject = trained.subject(evaluator)
        evaluation = trained.evaluate(evaluator, subject)
        oracle, random, graph = evaluation.references
        assert (oracle.name, oracle.success_rate) == ("oracle", 1)
        assert graph.name == "empirical-graph"
        assert graph.success_rate == random.success_rate
        assert evaluation.results["distances.reachable.pairs"] == oracle["distances.reachable.pairs"]
        assert evaluation.results["distances.seen.pairs"] is None
        assert evaluation.results["axioms.triangle_violations"] == 0
        assert any("no observation repeats" in notice for notice in evaluation.notices)
        assert len(evaluation_pictures(evaluator, subject, evaluation, tmp_path / protocol)) == 9
    assert subject.policy.deterministic is False


def test_reports_and_the_explorer(tmp_path: Path) -> None:
    from qrl.scripts.compare_agents import main as compare_agents
    from qrl.scripts.explore_agents import main as explore_agents

    for name, world in (("noisy", WORLD), ("teleport", {"name": "teleport"}), ("minigrid", {"name": "minigrid"})):
        dataset = qrl.collect(world=world, trajectories=20, max_steps=30)
        run = Run.start(small_settings(tmp_path / name, evaluate_every=20), dataset=dataset)
        finish(run)
        assert compare_agents([str(tmp_path / f"{name}.html"), str(run.path)]) == 0
        assert explore_agents([str(tmp_path / f"{name}-explorer.html"), str(run.path)]) == 0
