from collections import deque

import numpy as np
import pytest

from qrl.agents.planning.empirical_graph import empirical_steps
from qrl.agents.planning.references import oracle_steps
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from tests.agents.worlds import corridor, every_transition


def chain(actions: list[int], lengths: list[int], states: list[int], num_actions: int = 2) -> Dataset:
    rows = np.eye(5)[states]
    return Dataset.from_arrays(rows, actions, lengths, num_actions=num_actions)


def test_two_trajectories_are_stitched_by_hand() -> None:
    # 0 -0-> 1 -1-> 2, and 1 -0-> 3: so 0 reaches 3 in two steps, though no trajectory does.
    dataset = chain([0, 1, 0], [2, 1], [0, 1, 2, 1, 3])
    ids = {int(row.argmax()): state for state, row in enumerate(dataset.observations)}
    steps = empirical_steps(dataset)
    assert steps.shape == (4, 4, 2)
    assert steps[ids[0], ids[3], 0] == 1  # one more after the action
    assert steps[ids[0], ids[1], 0] == 0
    assert steps[ids[1], ids[3]].tolist() == [0, np.inf]
    assert np.isinf(steps[ids[0], :, 1]).all()  # never tried
    assert np.isinf(steps[ids[3]]).all()  # nothing was tried there


def test_in_a_stochastic_world_the_best_outcome_counts() -> None:
    dataset = chain([0, 0, 0], [1, 1, 1], [0, 1, 0, 2, 1, 2], num_actions=1)
    ids = {int(row.argmax()): state for state, row in enumerate(dataset.observations)}
    assert empirical_steps(dataset)[ids[0], ids[2], 0] == 0


@pytest.mark.parametrize("layout", ["corridor", "traps"])
def test_against_breadth_first_search(layout: str) -> None:
    dataset = corridor(15, layout)
    edges: dict[int, dict[int, int]] = {}
    for episode in range(dataset.num_episodes):
        first, last = dataset.offsets[episode], dataset.offsets[episode + 1]
        states = dataset.states[first + episode : last + episode + 1].tolist()
        for state, action, after in zip(states, dataset.actions[first:last].tolist(), states[1:], strict=False):
            edges.setdefault(state, {})[action] = after
    steps = empirical_steps(dataset)
    for state in range(len(dataset.observations)):
        for action in range(4):
            after = edges.get(state, {}).get(action)
            expected = np.full(len(dataset.observations), np.inf)
            queue = deque([] if after is None else [(after, 0)])
            while queue:
                visited, count = queue.popleft()
                if count < expected[visited]:
                    expected[visited] = count
                    queue.extend((neighbor, count + 1) for neighbor in edges.get(visited, {}).values())
            np.testing.assert_array_equal(steps[state, :, action], expected)


def test_with_every_transition_seen_the_graph_is_exact() -> None:
    truth = ground_truth(load_layout("traps"))
    np.testing.assert_array_equal(empirical_steps(every_transition("traps")), oracle_steps(truth))
