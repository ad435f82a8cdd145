"""Violated axioms and asymmetry, on tables made by hand."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

import qrl
from qrl import QModelSpec
from qrl.agents.evaluation.axioms import measure_axioms
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.references import oracle_steps
from qrl.agents.scaling import Scaling
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from qrl.q_models import QModel
from tests.agents.worlds import corridor


class Table(QModel):
    """d by a table of state ids; observations are these ids."""

    def __init__(self, table: np.ndarray, goal_kind: Literal["state", "state-action"]) -> None:
        super().__init__(QModelSpec(1, 2, 0.9))
        self.table = torch.tensor(table, dtype=torch.float32)  # (states, actions, states, goal actions)
        self.goal_kind = goal_kind

    def encode(self, observations: torch.Tensor, counts: Any = None) -> torch.Tensor:
        return observations[:, 0].round().long()

    def distance(self, state: Any, action: Any, goal: Any, goal_action: Any) -> torch.Tensor:
        distances = self.table[state, :, goal]  # (..., actions, goal actions)
        if self.goal_kind == "state":
            goal_action = None if goal_action is None else torch.zeros_like(goal_action)
        if action is not None:
            distances = distances.take_along_dim(action[..., None, None], -2).squeeze(-2)
        if goal_action is not None:
            distances = distances.take_along_dim(goal_action[..., None], -1).squeeze(-1)
        return distances


def cycle_data() -> Dataset:
    """Three states in a cycle: action 0 stays, action 1 moves on."""
    return Dataset.from_arrays([[0], [0], [1], [1], [2], [2], [0]], [0, 1, 0, 1, 0, 1], [6], num_actions=2)


def table_agent(table: np.ndarray, goal_kind: Literal["state", "state-action"]) -> Agent:
    return Agent(Table(table, goal_kind), Scaling.fit(torch.zeros(1, 1), standardize=False))


def test_axioms_of_a_quasimetric_on_pairs() -> None:
    # Six pairs on a directed cycle: d counts the steps onwards, so nothing is violated.
    pairs = np.arange(6)
    cycle = ((pairs - pairs[:, None]) % 6).reshape(3, 2, 3, 2)
    axioms = measure_axioms(table_agent(cycle, "state-action"), None, cycle_data(), None, seed=0)
    assert (axioms.triangle_violations, axioms.triangle_excess, axioms.identity_error) == (0, 0, 0)
    assert axioms.true_asymmetry is None
    # Between states: the best action, then the mean over the goal's actions.
    steps = cycle.mean(-1).min(1)
    expected = np.mean([abs(steps[s, g] - steps[g, s]) for s, g in [(0, 1), (1, 2), (2, 0)]])
    assert axioms.asymmetry == pytest.approx(expected)


def test_a_violation_is_found_and_measured() -> None:
    table = np.ones((3, 2, 3, 2))
    table[0, 0, 2, 1] = 4.5  # any path via a third pair costs 2
    axioms = measure_axioms(table_agent(table, "state-action"), None, cycle_data(), None, seed=0)
    assert axioms.triangle_excess == pytest.approx(2.5)
    # 1 of 36 pairs (x, z), and 4 of 6 pairs in between: not x (1 + 4.5), not z.
    assert axioms.triangle_violations == pytest.approx(1 / 36 * 4 / 6, rel=0.15)
    assert axioms.identity_error == 1


def test_goals_that_are_states() -> None:
    # d((s, a), g): the steps on the cycle from where a leads.
    states = np.arange(3)
    after = np.stack([states, (states + 1) % 3], 1)
    table = ((states - after[..., None]) % 3)[..., None]
    axioms = measure_axioms(table_agent(table, "state"), None, cycle_data(), None, seed=0)
    assert (axioms.triangle_violations, axioms.identity_error) == (0, 0)
    wrong = table.copy()
    wrong[0, 1, 0] += 3
    axioms = measure_axioms(table_agent(wrong, "state"), None, cycle_data(), None, seed=0)
    assert axioms.triangle_excess == pytest.approx(3)  # 5, but via state 1: 0, then 1 and 1 more
    assert axioms.identity_error == 0
    table[0, 1, 1] = 2  # where action 1 leads
    axioms = measure_axioms(table_agent(table, "state"), None, cycle_data(), None, seed=0)
    assert axioms.identity_error == pytest.approx(2 / 6)


def test_asymmetry_is_that_of_states_that_reach_each_other() -> None:
    """The exact distances, with something finite for unreachable pairs, have the exact asymmetry."""
    truth = ground_truth(load_layout("traps"))
    agent = table_agent(np.ones((3, 2, 3, 2)), "state-action")
    steps = np.where(np.isinf(oracle_steps(truth)), 100, oracle_steps(truth)).astype(np.float32)
    agent.model.encode = lambda observations, counts=None: torch.zeros(len(observations), dtype=torch.long)  # type: ignore[method-assign]
    axioms = measure_axioms(agent, steps, corridor(10, "traps"), truth, seed=0)
    assert axioms.asymmetry == pytest.approx(axioms.true_asymmetry)
    assert axioms.asymmetry is not None
    assert axioms.asymmetry > 0.5


def test_axioms_of_a_trained_quasimetric(trained: Path) -> None:
    dataset = Dataset.load(trained / "dataset.npz")
    truth = ground_truth(load_layout("traps"))
    agent = qrl.load(trained)
    axioms = measure_axioms(agent, None, dataset, truth, seed=0)
    assert axioms.triangle_violations == 0
    assert axioms.identity_error == 0
    assert axioms.asymmetry is not None
    assert axioms.asymmetry > 0
    assert axioms.true_asymmetry is not None
    steps = agent.all_steps_to_goal(dataset.observations)
    again = measure_axioms(agent, steps, dataset, truth, seed=0)
    assert again.asymmetry == pytest.approx(axioms.asymmetry, rel=1e-4)
