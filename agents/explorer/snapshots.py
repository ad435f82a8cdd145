"""What a planner estimates and does in a world: the ground truth, and each checkpoint of a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qrl.agents.evaluation.trained_agent import TrainedAgent
from qrl.agents.explorer.tables import pack, quantize
from qrl.agents.explorer.world import ExplorerWorld
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import Ids, Steps, greedy_actions, state_keys

MAX_CHECKPOINTS = 8  # per run, evenly spaced: each is a table of its own


@dataclass(frozen=True)
class Snapshot:
    """steps: (states, goals, actions), None for agents that only score actions; greedy: (states, goals)."""

    step: int
    steps: Steps | None
    greedy: Ids

    def as_dict(self) -> dict[str, Any]:
        """Tables with the states last: those of a goal lie together, and neighbouring states have similar values."""
        codes = None if self.steps is None else quantize(self.steps.transpose(1, 2, 0))
        return {
            "step": self.step,
            "steps": None if codes is None else codes.as_dict(),
            "greedy": pack(self.greedy.T.astype(np.uint8)),
        }


def exact_snapshot(world: ExplorerWorld, goals: Ids, seed: int) -> Snapshot | None:
    """The ground truth as a planner; None where it is unknown."""
    steps = world.exact_steps(goals)
    return None if steps is None else Snapshot(0, steps, _greedy(steps, world, goals, seed))


def agent_snapshot(agent: Agent, step: int, world: ExplorerWorld, goals: Ids) -> Snapshot:
    every = len(goals) == len(world.observations)
    costs = agent.all_costs(world.observations, None if every else goals)
    return Snapshot(step, costs if agent.learns == "distances" else None, _greedy(costs, world, goals, agent.seed))


def _greedy(costs: Steps, world: ExplorerWorld, goals: Ids, seed: int) -> Ids:
    """The actions of the greedy planner, its tie-breaking included."""
    keys = state_keys(world.observations)
    return greedy_actions(costs, keys[:, None], keys[None, goals], seed)


def run_snapshots(trained: TrainedAgent, world: ExplorerWorld, goals: Ids, checkpoints: bool) -> Iterator[Snapshot]:
    """The last checkpoint of a run, after the kept ones if they are asked for; by training step."""
    for path in kept_checkpoints(trained) if checkpoints else []:
        agent, metadata = trained.run.load_agent(path, trained.agent.seed)
        if metadata.step < trained.checkpoint.step:
            yield agent_snapshot(agent, metadata.step, world, goals)
    yield agent_snapshot(trained.agent, trained.checkpoint.step, world, goals)


def kept_checkpoints(trained: TrainedAgent) -> list[Path]:
    """At most `MAX_CHECKPOINTS` of those that the run kept, with the last, evenly spaced."""
    paths = sorted((trained.run.path / "checkpoints").glob("step-*.safetensors"))
    return [paths[index] for index in spread(len(paths), MAX_CHECKPOINTS)]


def spread(count: int, limit: int) -> list[int]:
    """At most `limit` of the numbers below `count`, evenly spaced, the last included."""
    if count <= limit:
        return list(range(count))
    return [((index + 1) * count - 1) // limit for index in range(limit)]
