"""Train on K configurations of unseen-doors, plan in the held-out ones, and write docs/worlds/doors.csv.

python -m docs.unseen_doors OUT    # about an hour on one core; what is complete in OUT is kept

A task leads from the hall into a room, so that it depends on the five doors of one side of the hall alone.
"""

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
LEARNERS: dict[str, dict[str, Any]] = {  # on top of --config unseen-doors
    "gcbc": {},
    "mbold": {
        "learner.name": "mbold",
        "learner.bound": "graph",
        "learner.loss": "huber",
        "learner.max_distance": 60,
        "learner.goals.balanced": 0.5,
        "learner.goals.connected": True,
        "learner.lr": 3e-3,
    },
}
SERIES = (("gcbc", 0), ("gcbc", 1), ("mbold", 0), ("gcbc", 2))  # learners with seeds
COUNTS = ("tasks", "success", "blocked", "loop", "door")
Row = dict[str, Any]

LAYOUT = load_layout("six-rooms")
DOORS = slice(2, 2 + len(LAYOUT.doors))  # columns of an observation
HALL = LAYOUT.width // 2
ON_THE_LEFT = LAYOUT.cells[LAYOUT.doors][:, 0] < HALL  # of each door


def trained(path: Path, learner: str, configurations: int, seed: int) -> Run:
    """The run in a folder, trained unless it is complete."""
    if (path / "COMPLETE").is_file():
        return Run.open(path)
    world = {"name": "unseen-doors", "configurations": configurations}
    dataset = qrl.collect(world=world, trajectories=10_000, seed=seed)
    settings = {"seed": seed, "threads": 1, **LEARNERS[learner]}
    return qrl.train(dataset, out=path, config="unseen-doors", settings=settings, force=True)


def scores(run: Run) -> Iterator[Row]:
    """Of the same tasks by every planner: a row per split, configuration and side of the hall."""
    seen = configurations_of(run.dataset.world)
    for split in ("train", "test"):
        agent = TrainedAgent.open(run, world=[f"split={split}"])
        evaluator = agent.evaluator("paper", TASKS)
        truth, starts, goals = evaluator.truth, evaluator.starts, evaluator.goals
        assert truth is not None
        policies = {subject.name: subject.policy for subject in evaluator.references()}
        for planner, policy in {"learned": agent.agent.policy_in(truth.world), **policies}.items():
            assert isinstance(policy, GreedyPolicy | RandomPolicy)
            outcome = policy.walk(truth, starts, goals)
            ends = {cause: outcome.cause == cause for cause in ("blocked", "loop")}
            ends = {"success": outcome.success, **ends, "door": np.zeros(len(starts), bool)}
            if isinstance(policy, GreedyPolicy) and ends["blocked"].any():
                ends["door"][ends["blocked"]] = at_door(policy, truth, starts[ends["blocked"]], goals[ends["blocked"]])
            for row in by_configuration(truth.world, starts, goals, ends, seen):
                yield {"split": split, "planner": planner, **row}


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


def configurations_of(world: World | None) -> NDArray[np.float32]:
    """(configurations, doors): the headings."""
    assert world is not None
    headings: NDArray[np.float32] = np.unique(world.observations[:, DOORS], axis=0)
    return headings


def by_configuration(
    world: World,
    starts: NDArray[np.int64],
    goals: NDArray[np.int64],
    ends: dict[str, NDArray[np.bool_]],
    seen: NDArray[np.float32],
) -> Iterator[Row]:
    """Counts of tasks and of how they end."""
    left = world.cells[goals][:, 0] < HALL
    headings = world.observations[starts][:, DOORS]
    for number, doors in enumerate(configurations_of(world)):
        for side, tasks, own in (("left", left, ON_THE_LEFT), ("right", ~left, ~ON_THE_LEFT)):
            these = (headings == doors).all(1) & tasks
            yield {
                "configuration": number,
                "side": side,
                "different_headings": int((seen != doors).sum(1).min()),  # from the nearest configuration of the data
                "side_seen": bool((seen[:, own] == doors[own]).all(1).any()),
                "tasks": int(these.sum()),
                **{end: int(reached[these].sum()) for end, reached in ends.items()},
            }


def summed(rows: list[Row]) -> Iterator[Row]:
    """Over the configurations that agree in everything but the counts."""
    counts: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for row in rows:
        kind = tuple((key, value) for key, value in row.items() if key not in ("configuration", *COUNTS))
        total = counts.setdefault(kind, [0] * len(COUNTS))
        counts[kind] = [before + row[key] for before, key in zip(total, COUNTS, strict=True)]
    for kind, total in counts.items():
        yield {**dict(kind), **dict(zip(COUNTS, total, strict=True))}


def main(out: Path) -> None:
    rows: list[Row] = []
    for learner, seed in SERIES:
        for configurations in CONFIGURATIONS:
            run = trained(out / f"{learner}-{configurations}-seed{seed}", learner, configurations, seed)
            path = run.path / "doors.json"
            if not path.is_file():
                with atomic_write(path) as file:
                    file.write(json.dumps(list(scores(run))).encode())
            name: Row = {"learner": learner, "configurations": configurations, "seed": seed}
            name["seconds"] = round(run.metrics.seconds())
            rows += [{**name, **row} for row in summed(json.loads(path.read_text()))]
            print(f"{run.name} is complete", flush=True)
            write_csv(TABLE, [list(rows[0]), *(list(row.values()) for row in rows)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
