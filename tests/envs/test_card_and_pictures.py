from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from qrl.envs.card import card, visits
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError
from qrl.envs.layout import Layout
from qrl.envs.pictures import coverage_picture

# Cells 0 to 3: start, a door to the right, floor, goal.
ROW = Layout("######\n#S>.G#\n######", "row")
UP, RIGHT, DOWN, LEFT = range(4)


@pytest.fixture
def by_hand() -> Dataset:
    """One episode that reaches the goal after a bump into the wall, and one that stays short of it."""
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


def test_visits_by_hand(by_hand: Dataset) -> None:
    assert visits(by_hand).tolist() == [[1, 2, 0, 0], [0, 1, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]


def test_card_by_hand(by_hand: Dataset) -> None:
    lines = card(by_hand)
    assert lines["episodes"] == "2"
    assert lines["transitions"] == "6"
    assert lines["reached their goal"] == lines["cut by the step cap"] == "50.0% of episodes"
    assert lines["episode length"] == "mean 3.0; minimum, quartiles, maximum 2, 2.5, 3, 3.5, 4"
    assert lines["states"] == "4 of 4 seen (100.0%)"
    assert lines["state-action pairs"] == "5 of 16 seen (31.2%)"
    assert lines["door crossings"] == "33.33% of steps enter a one-way door"
    assert lines["blocked moves"] == "33.33% of steps"
    assert lines["layout"] == "row: 6x3, 4 states, 1 doors, some states cannot reach others"
    assert lines["content hash"] == by_hand.content_hash
    assert "collector" not in lines


def test_card_tells_provenance() -> None:
    lines = card(collect(CollectorSettings(layout="corridor", trajectories=3, epsilon=0.25, seed=9)))
    assert lines["collector"] == "epsilon=0.25, max_steps=200, seed=9"
    assert "numpy" in lines["versions"]


def test_card_without_a_layout() -> None:
    dataset = Dataset.from_arrays(np.eye(3), [0, 1], [2], num_actions=2)
    assert "layout" not in card(dataset)
    with pytest.raises(DatasetError, match="has no layout"):
        coverage_picture(dataset, "never.png")


def test_coverage_picture_shows_walls_and_unseen_states(by_hand: Dataset, tmp_path: Path) -> None:
    coverage_picture(by_hand, tmp_path / "coverage.png")
    picture = imread(tmp_path / "coverage.png")
    height, width = picture.shape[:2]
    assert (height, width) == (624, 1320)
    colors = {tuple(color) for color in (picture[:, :, :3].reshape(-1, 3) * 255).round().astype(int).tolist()}
    assert (89, 89, 89) in colors  # walls
    assert (68, 1, 84) in colors  # the lowest colour: a state with one step
