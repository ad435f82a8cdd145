import numpy as np
import pytest

from qrl.common.limits import MAX_ACTIONS
from qrl.envs.card import card, visits
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.layout import Layout

# States 0 to 3: start, a door to the right, floor, goal.
ROW = Layout("######\n#S>.G#\n######", "row")
UP, RIGHT, DOWN, LEFT = range(4)


@pytest.fixture
def two_episodes() -> Dataset:
    """One episode that reaches the goal after bumping into a wall, and one that is truncated."""
    table = ROW.observations
    return Dataset.from_arrays(
        table[[0, 0, 1, 2, 3, 0, 1, 1]],
        [UP, RIGHT, RIGHT, RIGHT, RIGHT, LEFT],
        [4, 2],
        num_actions=4,
        terminated=[True, False],
        goals=table[[3, 3]],
        layout=ROW,
    )


def test_visits_by_hand(two_episodes: Dataset) -> None:
    assert visits(two_episodes).tolist() == [[1, 2, 0, 0], [0, 1, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]


def test_card_by_hand(two_episodes: Dataset) -> None:
    lines = card(two_episodes)
    assert lines["episodes"] == "2"
    assert lines["transitions"] == "6"
    assert lines["goals"] == "recorded for 100.0% of episodes"
    assert lines["reached their goal"] == "50.0% of episodes with a goal"
    assert lines["marked terminated"] == lines["marked truncated"] == "50.0% of episodes"
    assert lines["episode length"] == "mean 3.0; minimum, quartiles, maximum 2, 2.5, 3, 3.5, 4"
    assert lines["states"] == "4 of 4 visited (100.0%)"
    assert lines["state-action pairs"] == "5 of 16 visited (31.2%)"
    assert lines["door crossings"] == "33.33% of steps enter a one-way door"
    assert lines["blocked moves"] == "33.33% of steps"
    assert lines["layout"] == "row: 6x3, 4 states, 1 doors, with unreachable pairs of states"
    assert lines["content hash"] == two_episodes.content_hash
    assert "collector" not in lines


def test_provenance_of_collected_data() -> None:
    dataset = collect(CollectorSettings(layout="corridor", trajectories=300, epsilon=0.25, max_steps=9, seed=9))
    lines = card(dataset)
    assert lines["collector"] == "epsilon=0.25, max_steps=9, seed=9"
    assert lines["versions"].startswith("qrl ")
    assert 0 < dataset.terminated.mean() < 1
    assert lines["reached their goal"] == f"{dataset.terminated.mean():.1%} of episodes with a goal"


def test_goal_passed_without_termination_counts_as_reached() -> None:
    table = ROW.observations
    dataset = Dataset.from_arrays(
        table[[1, 2, 3, 0, 1]], [RIGHT, RIGHT, RIGHT], [2, 1], num_actions=4, goals=table[[2, 3]], layout=ROW
    )
    assert card(dataset)["reached their goal"] == "50.0% of episodes with a goal"


def test_nothing_is_claimed_about_goals_that_are_not_recorded() -> None:
    table = ROW.observations
    for layout, rows in ((None, np.eye(3)), (ROW, table[:3])):
        lines = card(Dataset.from_arrays(rows, [RIGHT, RIGHT], [2], num_actions=4, layout=layout))
        assert lines["goals"] == "none recorded"
        assert "reached their goal" not in lines
        assert not [text for text in lines.values() if "step cap" in text or "step limit" in text]


def test_success_is_unknown_without_a_layout() -> None:
    """Other worlds may count a goal as reached nearby, and terminate for other reasons."""
    lines = card(Dataset.from_arrays(np.eye(3), [0, 1], [2], num_actions=2, terminated=[True], goals=[[0, 0, 1]]))
    assert lines["goals"] == "recorded for 100.0% of episodes"
    assert lines["marked terminated"] == "100.0% of episodes"
    assert "reached their goal" not in lines


def test_no_coverage_without_a_layout() -> None:
    """The number of states of the world is unknown, also if no observation repeats."""
    unique = card(Dataset.from_arrays(np.eye(3), [0, 1], [2], num_actions=2, goals=[[7, 7, 7]]))
    assert unique["states"] == "3 distinct among 3 observations; number in the world unknown"
    assert unique["state-action pairs"] == "2 distinct among 2 transitions"
    repeated = card(Dataset.from_arrays([[0], [1], [0], [1], [0]], [0, 1, 0, 0], [4], num_actions=2))
    assert repeated["states"] == "2 distinct among 5 observations; number in the world unknown"
    assert repeated["state-action pairs"] == "3 distinct among 4 transitions"
    assert unique["repeated pairs"] == "none, so that nothing shows whether the world is deterministic"
    # Of (0, 0), (1, 1) and (1, 0), the first occurs twice.
    assert repeated["repeated pairs"] == "1 occur more than once, 0 of them (0.0%) with several next states"
    for lines in (unique, repeated):
        assert not {"layout", "door crossings", "blocked moves", "collector"} & set(lines)


def test_different_outcomes_of_the_same_pair() -> None:
    """(0, 0) leads to 1, 1 and 2, and (1, 0) twice to 0: of two repeated pairs, one has several outcomes."""
    rows = [[0], [1], [0], [1], [0], [2]]
    lines = card(Dataset.from_arrays(rows, [0, 0, 0, 0, 0], [5], num_actions=1))
    assert lines["repeated pairs"] == "2 occur more than once, 1 of them (50.0%) with several next states"


def test_a_known_world_whose_states_are_not_recognized() -> None:
    values = {"world": {"name": "noisy", "layout": "corridor"}, "trajectories": 5}
    lines = card(collect(CollectorSettings.from_values(values, "test")))
    assert lines["states"].endswith("observations; states of the world not recognized")
    assert "repeated pairs" not in lines


def test_actions_that_never_occur_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrl.envs.card.visits", None)  # the table of all pairs
    lines = card(Dataset.from_arrays(np.eye(3), [0, MAX_ACTIONS - 1], [2], num_actions=MAX_ACTIONS))
    assert lines["state-action pairs"] == "2 distinct among 2 transitions"
