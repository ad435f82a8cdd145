"""The epsilon-greedy collector: many episodes at once on the transition table."""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from tqdm import tqdm

from qrl.common.settings import Settings
from qrl.envs.dataset import ENV_ID, Dataset, Header, Spaces
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.layout import MOVES, OBSERVATION_DIM, load_layout

BLOCK = 1024  # episodes simulated together; part of what a seed means, so changing it changes every dataset


class CollectorSettings(Settings):
    CONFIGS = "data"

    layout: str = Field("six-rooms", description="name of a built-in layout, or path of a text file")
    trajectories: int = Field(1000, ge=1, le=10_000_000, description="number of episodes")
    epsilon: float = Field(0.6, ge=0, le=1, description="probability of a random action; else a shortest way")
    max_steps: int = Field(200, ge=1, le=10_000, description="step cap of an episode")
    seed: int = Field(0, ge=0, lt=2**63, description="same seed, same data; fewer trajectories are its first ones")


def collect(settings: CollectorSettings, progress: bool = False) -> Dataset:
    """Simulate episodes; `progress` shows a bar when the output is a terminal."""
    layout = load_layout(settings.layout)
    truth = ground_truth(layout)
    truth.check_tasks()
    blocks = range(-(-settings.trajectories // BLOCK))
    total = len(blocks) * BLOCK
    with tqdm(total=total, unit=" trajectories", disable=None if progress else True, leave=False) as bar:
        parts = []
        for block in blocks:
            parts.append(_simulate(truth, settings, block))
            bar.update(BLOCK)
    states, actions, lengths, goals, reached = (np.concatenate(part) for part in zip(*parts, strict=True))
    made = Dataset(
        observations=layout.observations,
        states=states,
        actions=actions,
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        terminated=reached,
        truncated=~reached,
        goals=goals.astype(np.int32),
        header=Header(
            source="the epsilon-greedy collector",
            spaces=Spaces(observation_dim=OBSERVATION_DIM, num_actions=len(MOVES)),
            env_id=ENV_ID,
            layout=layout.text,
            layout_name=layout.name,
            collector=settings.model_dump(include={"epsilon", "max_steps", "seed"}),
        ),
    )
    return made.first(settings.trajectories)


def _simulate(truth: GroundTruth, settings: CollectorSettings, block: int) -> tuple[NDArray[np.generic], ...]:
    """One block of episodes: states, actions (both flat, episode after episode), lengths, goals, reached."""
    # Always the whole block, whatever is kept of it: so the first n episodes do not depend on how many follow.
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(block,)))
    state, goal = truth.sample_tasks(rng, BLOCK)
    states = np.empty((settings.max_steps + 1, BLOCK), np.int32)
    actions = np.empty((settings.max_steps, BLOCK), np.int32)
    lengths = np.full(BLOCK, settings.max_steps)
    states[0] = state
    active = np.arange(BLOCK)
    for step in range(settings.max_steps):
        greedy = truth.greedy(state[active], goal[active])
        explore = rng.random(len(active)) < settings.epsilon
        # Uniform over the allowed actions: the highest of random scores among them.
        scores = rng.random(greedy.shape)
        action = np.where(greedy | explore[:, None], scores, -1).argmax(1)
        state[active] = truth.transitions[state[active], action]
        actions[step, active] = action
        states[step + 1, active] = state[active]
        arrived = state[active] == goal[active]
        lengths[active[arrived]] = step + 1
        active = active[~arrived]
        if not len(active):
            break
    steps = np.arange(settings.max_steps + 1)
    return (
        states.T[steps <= lengths[:, None]],
        actions.T[steps[:-1] < lengths[:, None]],
        lengths,
        goal,
        state == goal,
    )
