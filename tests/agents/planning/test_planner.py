import numpy as np
import pytest
import torch

from qrl import QModelSpec, make_q_model
from qrl.agents.planning.planner import (
    Ids,
    Outcome,
    RandomPolicy,
    TablePolicy,
    all_steps_to_goal,
    distances_between,
    greedy_actions,
    state_keys,
)
from qrl.agents.planning.references import oracle_steps
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.layout import Layout, load_layout
from qrl.errors import ContractError

UP, RIGHT, DOWN, LEFT = range(4)


def table_policy(truth: GroundTruth, table: Ids) -> TablePolicy:
    return TablePolicy(table, truth.layout.observations, RandomPolicy(4, 0))


def oracle(truth: GroundTruth) -> TablePolicy:
    return TablePolicy.greedy(oracle_steps(truth), truth.layout.observations, seed=0)


@pytest.mark.parametrize("layout", ["six-rooms", "traps", "corridor"])
def test_the_exact_distances_reach_every_goal_on_shortest_paths(layout: str) -> None:
    truth = ground_truth(load_layout(layout))
    starts, goals = truth.all_tasks()
    outcome = oracle(truth).walk(truth, starts, goals)
    assert outcome.success.all()
    assert (outcome.cause == "").all()
    np.testing.assert_array_equal(outcome.steps, truth.distances[starts, goals])


def test_tasks_are_all_starts_with_all_reachable_goals() -> None:
    starts, goals = ground_truth(load_layout("six-rooms")).all_tasks()
    assert len(starts) == len({*zip(starts.tolist(), goals.tolist(), strict=True)}) == 9180


def walk_row(actions: list[int], max_steps: int) -> Outcome:
    """Follow one action per cell in a row of four, from the first cell to the last."""
    truth = ground_truth(Layout("######\n#S..G#\n######"))
    table = np.tile(np.array(actions)[:, None], 4)
    return table_policy(truth, table).walk(truth, np.array([0]), np.array([3]), max_steps)


@pytest.mark.parametrize(
    ("actions", "max_steps", "cause"),
    [
        ([RIGHT, RIGHT, RIGHT, UP], 3, ""),
        ([RIGHT, RIGHT, RIGHT, UP], 2, "cap"),
        ([RIGHT, UP, RIGHT, UP], 9, "blocked"),
        ([RIGHT, UP, RIGHT, UP], 2, "blocked"),
        ([RIGHT, UP, RIGHT, UP], 1, "cap"),  # at the wall, but has not pushed against it yet
        ([LEFT, RIGHT, RIGHT, UP], 1, "blocked"),
        ([RIGHT, RIGHT, LEFT, UP], 9, "loop"),
        ([RIGHT, RIGHT, LEFT, UP], 3, "loop"),
        ([RIGHT, RIGHT, LEFT, UP], 2, "cap"),  # has not returned yet
    ],
)
def test_causes_of_failure(actions: list[int], max_steps: int, cause: str) -> None:
    outcome = walk_row(actions, max_steps)
    assert outcome.cause.tolist() == [cause]
    assert outcome.success.tolist() == [cause == ""]
    assert outcome.steps.tolist() == [max_steps]


def naive_outcome(truth: GroundTruth, table: Ids, start: int, goal: int, max_steps: int) -> tuple[int, str]:
    """Steps and cause of a single task, remembering every state."""
    state, visited = start, {start}
    for step in range(1, max_steps + 1):
        following = int(truth.transitions[state, table[state, goal]])
        if following == goal:
            return step, ""
        if following == state:
            return max_steps, "blocked"
        again, state = following in visited, following
        visited.add(state)
    return max_steps, "loop" if again else "cap"


@pytest.mark.parametrize("max_steps", [1, 2, 3, 7, 20, 300])
@pytest.mark.parametrize("wrong", [0.02, 0.2, 1])
def test_walks_equal_those_that_remember_every_state(max_steps: int, wrong: float) -> None:
    truth, rng = ground_truth(load_layout("traps")), np.random.default_rng(max_steps)
    table = oracle(truth).table.copy()
    mistaken = rng.random(table.shape) < wrong
    table[mistaken] = rng.integers(4, size=mistaken.sum())
    starts, goals = (part[rng.permutation(len(part))] for part in truth.all_tasks())
    outcome = table_policy(truth, table).walk(truth, starts, goals, max_steps)
    expected = [
        naive_outcome(truth, table, *task, max_steps) for task in zip(starts.tolist(), goals.tolist(), strict=True)
    ]
    assert list(zip(outcome.steps.tolist(), outcome.cause.tolist(), strict=True)) == expected
    np.testing.assert_array_equal(outcome.success, outcome.cause == "")


def test_random_walks_fail_only_by_the_cap() -> None:
    truth = ground_truth(load_layout("six-rooms"))
    starts, goals = truth.all_tasks()
    outcome = RandomPolicy(4, 0).walk(truth, starts, goals)
    assert 0.1 < outcome.success.mean() < 0.4
    assert set(outcome.cause[~outcome.success]) == {"cap"}
    again = RandomPolicy(4, 0).walk(truth, starts, goals)
    np.testing.assert_array_equal(outcome.steps, again.steps)


def test_ties_are_broken_by_the_seed_and_evenly() -> None:
    steps = np.zeros((100, 100, 4), np.float32)
    steps[..., 3] = 1
    keys = state_keys(np.random.default_rng(0).normal(size=(100, 5)))

    def chosen(seed: int) -> Ids:
        return greedy_actions(steps, keys[:, None], keys[None], seed)

    frequencies = np.bincount(chosen(0).ravel(), minlength=4) / 10_000
    assert frequencies == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=0.02)
    np.testing.assert_array_equal(chosen(0), chosen(0))
    assert (chosen(0) != chosen(1)).mean() > 0.5
    assert (chosen(0) != chosen(0).T).mean() > 0.5  # the order of state and goal counts
    # A single query gives the answer of the table, whatever the position of its states in it.
    assert greedy_actions(steps[7, 9], keys[7], keys[9], 0) == chosen(0)[7, 9]


def test_infinite_steps_are_ties() -> None:
    keys = state_keys(np.random.default_rng(0).normal(size=(50, 2)))
    zero, infinite = (np.full((50, 50, 4), value, np.float32) for value in (0, np.inf))
    actions = greedy_actions(infinite, keys[:, None], keys[None], 0)
    np.testing.assert_array_equal(actions, greedy_actions(zero, keys[:, None], keys[None], 0))
    assert {*actions.ravel().tolist()} == {0, 1, 2, 3}
    infinite[..., 2] = 7
    assert (greedy_actions(infinite, keys[:, None], keys[None], 0) == 2).all()


def test_a_table_identifies_states_by_their_observations() -> None:
    truth = ground_truth(load_layout("corridor"))
    policy = oracle(truth)
    observations = truth.layout.observations
    for state in range(len(observations)):
        for goal in range(len(observations)):
            assert policy.act(observations[state], observations[goal].tolist()) == policy.table[state, goal]

    class Constant:
        deterministic = True

        def act(self, observation: object, goal: object) -> int:
            return 77

    policy.fallback = Constant()
    assert policy.act(observations[0], observations[0] + 0.5) == 77
    assert policy.act(observations[0] + 0.5, observations[0]) == 77


def test_expected_values_of_the_actions_taken() -> None:
    truth = ground_truth(Layout("####\n#SG#\n####"))
    values = np.arange(16.0).reshape(2, 2, 4)
    policy = table_policy(truth, np.array([[UP, RIGHT], [LEFT, DOWN]]))
    np.testing.assert_array_equal(policy.expected(values), [[0, 5], [11, 14]])
    np.testing.assert_array_equal(RandomPolicy(4, 0).expected(values), [[1.5, 5.5], [9.5, 13.5]])


def test_distances_between_states_count_the_first_step() -> None:
    truth = ground_truth(load_layout("traps"))
    np.testing.assert_array_equal(distances_between(oracle_steps(truth)), truth.distances)


def test_minus_zero_is_zero() -> None:
    assert state_keys([[0.0, 1.0]]) == state_keys([[-0.0, 1.0]])


def test_distances_that_are_no_numbers_are_refused() -> None:
    truth = ground_truth(load_layout("corridor"))
    model = make_q_model("iqe-maxmean", QModelSpec(18, 4, 0.95), hidden_sizes=(8,), latent_size=8).eval()
    with torch.no_grad():
        next(model.parameters()).fill_(torch.nan)
    with pytest.raises(ContractError, match="returned NaN; check its weights"):
        all_steps_to_goal(model, torch.tensor(truth.layout.observations))


def test_all_steps_equal_single_queries() -> None:
    truth = ground_truth(load_layout("traps"))
    model = make_q_model("mrn", QModelSpec(18, 4, 0.95), hidden_sizes=(8,), latent_size=8).train()
    observations = torch.tensor(truth.layout.observations)
    table = all_steps_to_goal(model, observations)
    assert model.training  # unchanged
    model.eval()
    rows = model.encode(observations)
    for state, goal in [(0, 5), (106, 3), (50, 50)]:
        expected = model.steps_to_goal(rows[state], rows[goal]).detach().numpy()
        np.testing.assert_allclose(table[state, goal], expected, rtol=1e-4, atol=1e-5)
