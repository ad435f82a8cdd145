"""The table of MiniGrid worlds in docs/worlds.md: enumerated, and solved by the oracle in the real environment.

python -m docs.minigrid_worlds
"""

from typing import Any

import gymnasium
import minigrid  # noqa: F401 - registers its environments
import numpy as np

from qrl import make_world
from qrl.common.text import plain_table
from qrl.envs.ground_truth import GroundTruth

ENVIRONMENTS = ["FourRooms", "DoorKey-8x8", "LavaGapS7", "KeyCorridorS3R1"]


def replayed(env: Any, truth: GroundTruth, start: int, goal: int) -> bool:
    """Whether a shortest path to the goal succeeds in the environment, in as many steps as expected."""
    distances = truth.distances_to(np.array([goal]))
    env.reset(seed=0)
    state, reward, steps, ended = start, 0.0, 0, False
    while not ended:
        action = int(truth.greedy(np.array([state]), np.array([0]), distances)[0].argmax())
        state, steps = int(truth.transitions[state, action]), steps + 1
        _, reward, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
    return reward > 0 and steps == distances[start, 0]


def row(name: str) -> tuple[str, ...]:
    env_id = f"MiniGrid-{name}-v0"
    truth = GroundTruth(make_world("minigrid", env=env_id))
    env = gymnasium.make(env_id)
    tasks = list(zip(*truth.all_tasks(), strict=True))
    success = np.mean([replayed(env, truth, int(start), int(goal)) for start, goal in tasks])
    distances = truth.distances
    longest = distances[np.isfinite(distances)].max()
    from_start = truth.between(*truth.all_tasks())
    counts = f"{truth.world.num_states:,}", f"{longest:.0f}", str(len(tasks)), f"{from_start.min():.0f}"
    return (env_id, *counts, f"{success:.1f}")


if __name__ == "__main__":
    titles = ("environment", "states", "longest distance", "tasks", "shortest solution", "oracle success, replayed")
    print(plain_table([titles, *map(row, ENVIRONMENTS)]))
