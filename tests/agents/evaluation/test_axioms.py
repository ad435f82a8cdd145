"""Distance errors and axioms, against slow and hand-made cases."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

import qrl
from qrl import QModelSpec
from qrl.agents.evaluation.diagnostics import axioms, buckets, distances, seen_goals
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.references import oracle_steps
from qrl.agents.scaling import fit_scaling
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from qrl.q_models import QModel
from tests.agents.worlds import corridor


@pytest.mark.parametrize(
    ("layout", "expected"),
    [("six-rooms", ["0-4", "45-49"]), ("corridor", ["0-0", "9-9"]), ("traps", ["0-2", "24-26"])],
)
def test_buckets(layout: str, expected: list[str]) -> None:
    truth = ground_truth(load_layout(layout))
    made = buckets(truth)
    assert len(made) <= 10
    assert [f"{low}-{high}" for low, high in (made[0], made[-1])] == expected
    values = [value for low, high in made for value in range(low, high + 1)]
    assert values == [*range(len(values))]
    assert made[-1][0] <= truth.distances[np.isfinite(truth.distances)].max() <= made[-1][1]


def test_seen_goals_against_a_plain_loop() -> None:
    dataset = corridor(10, "traps")
    expected = np.zeros((len(dataset.observations), len(dataset.observations), 4), bool)
    for episode in range(dataset.num_episodes):
        first, last = int(dataset.offsets[episode]), int(dataset.offsets[episode + 1])
        states = dataset.states[first + episode : last + episode + 1]
        for step in range(last - first):
            for goal in states[step + 1 :]:
                expected[states[step], goal, dataset.actions[first + step]] = True
    np.testing.assert_array_equal(seen_goals(dataset), expected)


def test_errors_by_hand() -> None:
    dataset = corridor(10, "traps")
    truth = ground_truth(load_layout("traps"))
    exact = oracle_steps(truth)
    seen = seen_goals(dataset)
    states = np.arange(len(exact))
    other = (states[:, None] != states)[..., None] & np.ones(4, bool)
    # Too short by 2 where seen, too long by 1 where unseen, and 7 where there is no way.
    steps = np.where(np.isinf(exact), 7, exact + np.where(seen, -2, 1)).astype(np.float32)
    found = distances(steps, truth, dataset)
    finite = np.isfinite(exact) & other
    share = seen[finite].mean()
    assert found.reachable.pairs == finite.sum()
    assert found.reachable.known == 1
    assert found.reachable.signed_error == pytest.approx(1 - 3 * share)
    assert found.reachable.absolute_error == pytest.approx(1 + share)
    assert found.reachable.underestimated == pytest.approx(share)
    assert (found.seen.signed_error, found.seen.absolute_error, found.seen.underestimated) == (-2, 2, 1)
    assert (found.unseen.signed_error, found.unseen.underestimated) == (1, 0)
    assert found.seen.pairs + found.unseen.pairs == found.reachable.pairs
    assert found.unreachable.pairs == (np.isinf(exact) & other).sum() > 0
    assert (found.unreachable.mean_estimate, found.unreachable.beyond) == (7, 0)
    assert sum(bucket.pairs for bucket in found.by_distance) == found.reachable.pairs
    assert found.by_distance[0].low == 0


def test_the_truth_has_no_errors_and_infinite_estimates_are_counted() -> None:
    dataset = corridor(10, "traps")
    truth = ground_truth(load_layout("traps"))
    exact = oracle_steps(truth)
    found = distances(exact, truth, dataset)
    assert found.reachable.absolute_error == 0
    assert found.reachable.spearman == pytest.approx(1)
    assert found.unreachable.beyond == 1
    half = exact.copy()
    half[:, ::2] = np.inf
    partly = distances(half, truth, dataset).reachable
    assert partly.known == pytest.approx(0.5, abs=0.1)
    assert partly.absolute_error == 0
    assert partly.spearman is not None
    assert partly.spearman < 0.7


def test_rank_correlation_of_a_reversed_estimate() -> None:
    dataset = corridor()
    truth = ground_truth(load_layout("corridor"))
    exact = oracle_steps(truth)
    assert distances(-exact, truth, dataset).reachable.spearman == pytest.approx(-1)
    assert distances(np.zeros_like(exact), truth, dataset).reachable.spearman is None


class Table(QModel):
    """d by a table of state numbers; observations are their numbers."""

    def __init__(self, table: np.ndarray, goal_kind: Literal["state", "state-action"]) -> None:
        super().__init__(QModelSpec(1, 2, 0.9))
        self.table = torch.tensor(table, dtype=torch.float32)  # (states, actions, states, goal actions)
        self.goal_kind = goal_kind

    def encode(self, observations: torch.Tensor, counts: Any = None) -> torch.Tensor:
        return observations[:, 0].round().long()

    def distance(self, state: Any, action: Any, goal: Any, goal_action: Any) -> torch.Tensor:
        found = self.table[state, :, goal]  # (..., actions, goal actions)
        if self.goal_kind == "state":
            goal_action = None if goal_action is None else torch.zeros_like(goal_action)
        if action is not None:
            found = found.take_along_dim(action[..., None, None], -2).squeeze(-2)
        if goal_action is not None:
            found = found.take_along_dim(goal_action[..., None], -1).squeeze(-1)
        return found


def ring_data() -> Dataset:
    """Three states in a ring: action 0 stays, action 1 goes on."""
    return Dataset.from_arrays([[0], [0], [1], [1], [2], [2], [0]], [0, 1, 0, 1, 0, 1], [6], num_actions=2)


def table_agent(table: np.ndarray, goal_kind: Literal["state", "state-action"]) -> Agent:
    return Agent(Table(table, goal_kind), fit_scaling(torch.zeros(1, 1), standardize=False))


def test_axioms_of_a_quasimetric_on_pairs() -> None:
    # Six pairs on a directed ring: d is how far to go on, so no violations.
    places = np.arange(6)
    ring = ((places - places[:, None]) % 6).reshape(3, 2, 3, 2)
    found = axioms(table_agent(ring, "state-action"), None, ring_data(), None, seed=0)
    assert (found.triangle_violations, found.triangle_excess, found.identity_error) == (0, 0, 0)
    assert found.true_asymmetry is None
    # Between states: the best action, then the mean over the goal's actions.
    steps = ring.mean(-1).min(1)
    pairs = [(0, 1), (1, 2), (2, 0)]
    assert found.asymmetry == pytest.approx(np.mean([abs(steps[s, g] - steps[g, s]) for s, g in pairs]))


def test_a_violation_is_found_and_measured() -> None:
    table = np.ones((3, 2, 3, 2))
    table[0, 0, 2, 1] = 4.5  # and any way by a third pair costs 2
    found = axioms(table_agent(table, "state-action"), None, ring_data(), None, seed=0)
    assert found.triangle_excess == pytest.approx(2.5)
    # 1 of 36 pairs (x, z), and 4 of 6 pairs in between: not x (1 + 4.5), not z.
    assert found.triangle_violations == pytest.approx(1 / 36 * 4 / 6, rel=0.15)
    assert found.identity_error == 1


def test_goals_that_are_states() -> None:
    # d((s, a), g): the steps from where a leads to, on the ring.
    states = np.arange(3)
    after = np.stack([states, (states + 1) % 3], 1)
    table = ((states - after[..., None]) % 3)[..., None]
    found = axioms(table_agent(table, "state"), None, ring_data(), None, seed=0)
    assert (found.triangle_violations, found.identity_error) == (0, 0)
    wrong = table.copy()
    wrong[0, 1, 0] += 3
    found = axioms(table_agent(wrong, "state"), None, ring_data(), None, seed=0)
    assert found.triangle_excess == pytest.approx(3)  # 5, but by way of state 1: 0, then 1 and 1 more
    assert found.identity_error == 0
    table[0, 1, 1] = 2  # where action 1 leads to
    assert axioms(table_agent(table, "state"), None, ring_data(), None, 0).identity_error == pytest.approx(2 / 6)


def test_asymmetry_is_that_of_states_that_reach_each_other() -> None:
    """The true distances, and something finite where there is no way, have the true asymmetry."""
    truth = ground_truth(load_layout("traps"))
    dataset = corridor(10, "traps")
    agent = table_agent(np.ones((3, 2, 3, 2)), "state-action")
    steps = np.where(np.isinf(oracle_steps(truth)), 100, oracle_steps(truth)).astype(np.float32)
    agent.model.encode = lambda observations, counts=None: torch.zeros(len(observations), dtype=torch.long)  # type: ignore[method-assign]
    found = axioms(agent, steps, dataset, truth, seed=0)
    assert found.asymmetry == pytest.approx(found.true_asymmetry)
    assert found.asymmetry is not None
    assert found.asymmetry > 0.5


def test_axioms_of_a_trained_quasimetric(trained: Path) -> None:
    dataset = Dataset.load(trained / "dataset.npz")
    truth = ground_truth(load_layout("traps"))
    agent = qrl.load(trained)
    found = axioms(agent, None, dataset, truth, seed=0)
    assert found.triangle_violations == 0
    assert found.identity_error == 0
    assert found.asymmetry is not None
    assert found.asymmetry > 0
    assert found.true_asymmetry is not None
    steps = agent.all_steps_to_goal(dataset.observations)
    assert axioms(agent, steps, dataset, truth, seed=0).asymmetry == pytest.approx(found.asymmetry, rel=1e-4)
