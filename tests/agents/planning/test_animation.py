"""Episodes as GIFs."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from qrl.agents.planning.animation import CAPTION, caption, save_gif
from qrl.agents.planning.planner import RandomPolicy, TablePolicy
from qrl.agents.planning.references import oracle_steps
from qrl.agents.planning.rollouts import Episode, estimator, open_env, play
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.layout import load_layout
from tests.agents.goal_envs import Ring


def render(actions: list[int] | None) -> Episode:
    """Follow one action per state of the corridor, or the exact distances."""
    layout = load_layout("corridor")
    truth = GroundTruth(layout)
    policy = TablePolicy.greedy(oracle_steps(truth), layout.observations, seed=0)
    if actions is not None:
        policy.table[:] = np.array(actions)[:, None]
    env = open_env("qrl/OneWayDoors-v0", layout=layout, max_steps=300, render_mode="rgb_array", tile_size=8)
    estimate = estimator(None, oracle_steps(truth), layout.observations)
    return play(env, policy, render=True, estimate=estimate, seed=0)


def test_a_rollout_as_a_gif(tmp_path: Path) -> None:
    episode = render(None)
    assert len(episode.frames) == len(episode.actions) + 1 == 4
    save_gif(episode, tmp_path / "a.gif")
    height, width, _ = episode.frames[0].shape
    with Image.open(tmp_path / "a.gif") as image:
        assert image.n_frames == 4  # type: ignore[attr-defined]
        assert image.size == (max(width, 230), height + CAPTION)
        assert image.info["loop"] == 0
    save_gif(episode, tmp_path / "b.gif")
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()


def test_the_caption_counts_steps_and_shows_the_estimate() -> None:
    episode = render(None)
    assert episode.estimates == [3, 2, 1, 0]
    assert caption(episode, 1, last=False) == ("step 1", "estimated steps to the goal: 2.0")
    assert caption(episode, 3, last=True) == ("step 3: goal reached", "estimated steps to the goal: 0.0")
    failed = Episode([], [0], success=False, cause="loop", estimates=[np.inf, np.inf])
    assert caption(failed, 1, last=True) == ("step 1: failed (loop)", "")


def test_the_trail_follows_the_agent(tmp_path: Path) -> None:
    episode = render(None)
    layout = load_layout("corridor")
    start = int(np.argmin(np.abs(layout.observations - episode.observations[0]).sum(1)))
    x, y = layout.cells[start]
    assert episode.trail[0] == pytest.approx(((x + 0.5) / layout.width, (y + 0.5) / layout.height))
    steps = np.abs(np.diff(episode.trail, axis=0) * [layout.width, layout.height]).sum(1)
    assert steps == pytest.approx(np.ones(3))  # a cell per step
    save_gif(episode, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as image:
        pink = []
        for frame in range(4):
            image.seek(frame)
            red, green, blue = np.moveaxis(np.asarray(image.convert("RGB"), int), -1, 0)
            pink.append(int(((red > 200) & (green < 150) & (blue > 150)).sum()))
    assert pink == sorted(pink)
    assert pink[0] < pink[-1]


def test_other_environments_have_no_trail() -> None:
    episode = play(Ring(), RandomPolicy(2, 0), max_steps=3, seed=0)
    assert not episode.trail
    assert not episode.estimates


def test_a_loop_is_shown_until_it_closes(tmp_path: Path) -> None:
    episode = render([1, 3] * 5)  # right and left again
    assert episode.cause == "loop"
    assert len(episode.frames) == 301
    save_gif(episode, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as image:
        assert 4 <= image.n_frames < 10  # type: ignore[attr-defined]
