"""How much faster bulk collection is than stepping the Gymnasium environment with the same policy."""

import random
import statistics
import time

import gymnasium
import numpy as np

from benchmarks.measure import table
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import ENV_ID
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import MOVES, load_layout

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


def main() -> str:
    greedy_actions = table_of_greedy_actions()
    pairs = [(bulk_steps_per_second(seed), stepped_steps_per_second(seed, greedy_actions)) for seed in range(ROUNDS)]
    bulk, stepped = (statistics.median(column) for column in zip(*pairs, strict=True))
    rows = [
        [f"bulk, {SETTINGS.trajectories:,} trajectories", f"{bulk:,.0f}", f"{bulk / stepped:.0f}x"],
        [f"gymnasium environment, {STEPPED_EPISODES} trajectories", f"{stepped:,.0f}", "1x"],
    ]
    note = "Baseline: stepping the environment with the same policy, its greedy actions looked up in a table."
    return table(f"Collection in {SETTINGS.layout}", ["method", "steps per second", "ratio"], rows, note)
