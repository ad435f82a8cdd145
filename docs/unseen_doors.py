"""Train on K configurations of unseen-doors, plan in the held-out ones, and write docs/worlds/doors.csv.

python -m docs.unseen_doors OUT    # about a quarter of an hour on one core; what is complete in OUT is kept

A task leads from the hall into a room, so that it depends on the five doors of one side of the hall alone.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import qrl
from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.planning.planner import GreedyPolicy, RandomPolicy
from qrl.agents.runs.run import Run
from qrl.common.files import atomic_write, write_csv
from qrl.envs.ground_truth import GroundTruth
from qrl.envs.layout import MOVES, load_layout
from qrl.envs.world import World

TABLE = Path(__file__).parent / "worlds" / "doors.csv"
CONFIGURATIONS = (10, 30, 80, 150)
TASKS = 2000
SEEDS = (0,)
# Of a task: the side of its goal, whether the data has a configuration with the same doors on that side, how many doors
# differ from the nearest configuration in the data, and the least of its range of exact distances.
KIND = ("side", "side_seen", "different_doors", "distance")
RANGE = 8
Row = dict[str, Any]

LAYOUT = load_layout("six-rooms")
HALL = LAYOUT.width // 2
ON_THE_LEFT = LAYOUT.cells[LAYOUT.doors][:, 0] < HALL  # of each door


def trained(path: Path, configurations: int, seed: int) -> Run:
    """The run in a folder, trained unless it is complete."""
    if (path / "COMPLETE").is_file():
        return Run.open(path)
    world = {"name": "unseen-doors", "configurations": configurations}
    dataset = qrl.collect(world=world, trajectories=10_000, seed=seed)
    return qrl.train(dataset, out=path, config="unseen-doors", settings={"seed": seed, "threads": 1}, force=True)


def scores(run: Run) -> Iterator[Row]:
    """Of the same tasks by every planner: a row per split and kind of task, with counts of how they end."""
    seen = np.unique(headings(run.dataset.world), axis=0)
    for split in ("train", "test"):
        agent = TrainedAgent.open(run, world=[f"split={split}"])
        evaluator = agent.evaluator("paper", TASKS)
        truth, starts, goals = evaluator.truth, evaluator.starts, evaluator.goals
        assert truth is not None
        kinds = kinds_of_tasks(truth, starts, goals, seen)
        policies = {subject.name: subject.policy for subject in evaluator.references()}
        for planner, policy in {"learned": agent.agent.policy_in(truth.world), **policies}.items():
            assert isinstance(policy, GreedyPolicy | RandomPolicy)
            outcome = policy.walk(truth, starts, goals)
            blocked, door = outcome.cause == "blocked", np.zeros(len(starts), bool)
            if isinstance(policy, GreedyPolicy) and blocked.any():
                door[blocked] = at_door(policy, truth, starts[blocked], goals[blocked])
            ends = {"tasks": starts >= 0, "success": outcome.success, "blocked": blocked, "door": door}
            ends["loop"] = outcome.cause == "loop"
            for kind in sorted(set(kinds)):
                these = np.array([other == kind for other in kinds])
                counts = {end: int(reached[these].sum()) for end, reached in ends.items()}
                yield {"split": split, "planner": planner, **dict(zip(KIND, kind, strict=True)), **counts}


def headings(world: World | None) -> NDArray[np.float32]:
    """(states, doors): where the doors point."""
    assert world is not None
    columns: NDArray[np.float32] = world.observations[:, 2 : 2 + len(LAYOUT.doors)]
    return columns


def kinds_of_tasks(
    truth: GroundTruth, starts: NDArray[np.int64], goals: NDArray[np.int64], seen: NDArray[np.float32]
) -> list[tuple[str | int, ...]]:
    """`KIND` of each task; `seen` are the configurations in the data."""
    exact = truth.between(starts, goals)
    left = truth.world.cells[goals][:, 0] < HALL
    kinds: list[tuple[str | int, ...]] = []
    for doors, on_the_left, steps in zip(headings(truth.world)[starts], left, exact, strict=True):
        own = on_the_left == ON_THE_LEFT
        side_seen = int((seen[:, own] == doors[own]).all(1).any())
        nearest = int((seen != doors).sum(1).min())
        kinds.append(("left" if on_the_left else "right", side_seen, nearest, int(steps - 1) // RANGE * RANGE + 1))
    return kinds


def at_door(
    policy: GreedyPolicy, truth: GroundTruth, starts: NDArray[np.int64], goals: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether walks that are blocked at their end push against a door, not against a wall."""
    states, actions = starts, policy.choose(starts, goals)
    while not np.array_equal(following := truth.transitions[states, actions], states):
        states, actions = following, policy.choose(following, goals)
    x, y = (truth.world.cells[states] + MOVES[actions]).T
    floor: NDArray[np.bool_] = LAYOUT.state_ids[y, x] >= 0
    return floor


def main(out: Path) -> None:
    rows: list[Row] = []
    for seed, configurations in itertools.product(SEEDS, CONFIGURATIONS):
        run = trained(out / f"{configurations}-seed{seed}", configurations, seed)
        path = run.path / "doors.json"
        if not path.is_file():
            with atomic_write(path) as file:
                file.write(json.dumps(list(scores(run))).encode())
        name: Row = {"learner": run.settings.learner.name, "configurations": configurations, "seed": seed}
        name["seconds"] = round(run.metrics.seconds())
        rows += [{**name, **row} for row in json.loads(path.read_text())]
        print(f"{run.name} is complete", flush=True)
        write_csv(TABLE, [list(rows[0]), *(list(row.values()) for row in rows)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
