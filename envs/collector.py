"""The epsilon-greedy collector: simulates blocks of episodes on the transition table."""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from tqdm import tqdm

from qrl.common.settings import Settings
from qrl.envs.dataset import Dataset, Spaces, TrajectoryHeader
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.envs.layout import MOVES, OBSERVATION_DIM, load_layout
from qrl.envs.registration import ENV_ID

BLOCK_EPISODES = 1024  # episodes simulated together; changing it changes the data of every seed


class CollectorSettings(Settings):
    CONFIGS = "data"

    layout: str = Field("six-rooms", description="name of a built-in layout or path of a text file")
    trajectories: int = Field(1000, ge=1, le=10_000_000, description="number of episodes")
    epsilon: float = Field(0.6, ge=0, le=1, description="probability of a random action; else along a shortest path")
    max_steps: int = Field(200, ge=1, le=10_000, description="maximum number of steps per episode")
    seed: int = Field(0, ge=0, lt=2**63, description="random seed; fewer trajectories are a prefix of more")


def collect(settings: CollectorSettings, progress: bool = False) -> Dataset:
    """Simulate episodes. `progress` shows a progress bar if stderr is a terminal."""
    layout = load_layout(settings.layout)
    truth = ground_truth(layout)
    truth.check_tasks()
    num_blocks = -(-settings.trajectories // BLOCK_EPISODES)
    total = num_blocks * BLOCK_EPISODES
    with tqdm(total=total, unit=" trajectories", disable=None if progress else True, leave=False) as bar:
        blocks = []
        for index in range(num_blocks):
            blocks.append(_simulate_block(truth, settings, index))
            bar.update(BLOCK_EPISODES)
    states, actions, lengths, goals, reached = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    dataset = Dataset(
        observations=layout.observations,
        states=states,
        actions=actions,
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        terminated=reached,
        truncated=~reached,
        goals=goals.astype(np.int32),
        header=TrajectoryHeader(
            source="the epsilon-greedy collector",
            spaces=Spaces(observation_dim=OBSERVATION_DIM, num_actions=len(MOVES)),
            env_id=ENV_ID,
            layout=layout.text,
            layout_name=layout.name,
            collector=settings.model_dump(include={"epsilon", "max_steps", "seed"}),
        ),
    )
    return dataset.first(settings.trajectories)


def _simulate_block(truth: GroundTruth, settings: CollectorSettings, index: int) -> tuple[NDArray[np.generic], ...]:
    """Concatenated states and actions of one block of episodes, and per episode its length, goal and success."""
    # Always a whole block, so that the first n episodes do not depend on how many follow.
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(index,)))
    state, goal = truth.sample_tasks(rng, BLOCK_EPISODES)
    states = np.empty((settings.max_steps + 1, BLOCK_EPISODES), np.int32)
    actions = np.empty((settings.max_steps, BLOCK_EPISODES), np.int32)
    lengths = np.full(BLOCK_EPISODES, settings.max_steps)
    states[0] = state
    active = np.arange(BLOCK_EPISODES)
    for step in range(settings.max_steps):
        greedy = truth.greedy(state[active], goal[active])
        explore = rng.random(len(active)) < settings.epsilon
        # The argmax of random scores is uniform over the allowed actions.
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
