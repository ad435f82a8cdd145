"""How much faster bulk collection is than stepping the Gymnasium environment with the same policy.

Prints steps a second of both, as medians of alternating runs in one process, and their ratio.
"""

import random
import statistics
import time

import gymnasium
import numpy as np

from envs.collector import CollectorSettings, collect
from envs.dataset import ENV_ID
from envs.ground_truth import ground_truth
from envs.layout import MOVES, load_layout

ROUNDS = 5
STEPPED_EPISODES = 100
SETTINGS = CollectorSettings(trajectories=10_000)


def bulk_steps_per_second(seed: int) -> float:
    begin = time.perf_counter()
    dataset = collect(SETTINGS.model_copy(update={"seed": seed}))
    return dataset.num_transitions / (time.perf_counter() - begin)


def stepped_steps_per_second(seed: int, greedy_actions: list[list[list[int]]]) -> float:
    """The baseline: `env.step` in a loop, with the policy's greedy actions looked up in a table."""
    env = gymnasium.make(ENV_ID, layout=SETTINGS.layout, max_steps=SETTINGS.max_steps)
    rng = random.Random(seed)  # noqa: S311
    steps = 0
    begin = time.perf_counter()
    for episode in range(STEPPED_EPISODES):
        _, info = env.reset(seed=seed * STEPPED_EPISODES + episode)
        done = False
        while not done:
            explore = rng.random() < SETTINGS.epsilon
            action = rng.choice(range(len(MOVES)) if explore else greedy_actions[info["state"]][info["goal"]])
            _, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
            steps += 1
    return steps / (time.perf_counter() - begin)


def table_of_greedy_actions() -> list[list[list[int]]]:
    truth = ground_truth(load_layout(SETTINGS.layout))
    goals = np.arange(len(truth.transitions))
    return [[np.flatnonzero(mask).tolist() for mask in truth.greedy(goals * 0 + state, goals)] for state in goals]


def main() -> None:
    greedy_actions = table_of_greedy_actions()
    pairs = [(bulk_steps_per_second(seed), stepped_steps_per_second(seed, greedy_actions)) for seed in range(ROUNDS)]
    bulk, stepped = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"collection in {SETTINGS.layout}, epsilon {SETTINGS.epsilon}, medians of {ROUNDS} alternating runs")
    print(f"  bulk, {SETTINGS.trajectories:,} trajectories      {bulk:>12,.0f} steps/s")
    print(f"  gymnasium env, {STEPPED_EPISODES} trajectories  {stepped:>12,.0f} steps/s")
    print(f"  ratio                           {bulk / stepped:>12,.0f}x")


if __name__ == "__main__":
    main()
