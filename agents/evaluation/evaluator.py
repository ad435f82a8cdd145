"""How well a planner plans, and how near its distances are to the truth: every planner meets the same tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from qrl.agents.evaluation.diagnostics import Range, axioms, buckets, distances, reachable_pairs
from qrl.agents.evaluation.results import CAUSES, REFERENCES, Bucket, Planning, Protocol, Results
from qrl.agents.evaluation.statistics import wilson_interval
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.planner import (
    MAX_STEPS,
    Outcome,
    Policy,
    RandomPolicy,
    Steps,
    TablePolicy,
    all_steps_to_goal,
    exhaustive_tasks,
)
from qrl.agents.planning.references import empirical_steps, oracle_steps
from qrl.agents.planning.rollouts import Env, Episode, check_env, open_env, outcome, play, play_seeds, play_tasks
from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name
from qrl.common.seeds import derived_seed
from qrl.envs.dataset import ENV_ID, Dataset
from qrl.envs.errors import DatasetError, WorldError
from qrl.envs.ground_truth import GroundTruth, ground_truth
from qrl.errors import ShapeError
from qrl.q_models.base import QModel

Cell = tuple[int, int]  # (x, y)

EPISODES = 50  # the paper's number of sampled tasks
MAX_TABLE = 4000  # distinct states up to which all their pairs are tabled: 256 MB for four actions


def score(model: QModel, observations: Tensor, truth: GroundTruth, seed: int) -> dict[str, float]:
    """The few numbers that are worth their time during training: planning over all tasks, and errors of the steps."""
    steps = all_steps_to_goal(model, observations)
    walked = TablePolicy.greedy(steps, truth.layout.observations, seed).walk(truth, *exhaustive_tasks(truth))
    exact = oracle_steps(truth)
    compared = reachable_pairs(exact)
    error = steps[compared] - exact[compared]
    return {
        "success_rate": float(walked.success.mean()),
        "signed_error": float(error.mean()),
        "absolute_error": float(np.abs(error).mean()),
    }


@dataclass(frozen=True)
class Subject:
    """What is scored: what it does, and what it takes the steps to the goal to be, if it has an idea of them."""

    name: str
    policy: Policy
    steps: Steps | None = None
    agent: Agent | None = None


class Evaluator:
    """The tasks and the truth of one evaluation.

    dataset: gives the states and, with its layout, the truth and the world.
    protocol: "paper" steps `episodes` sampled tasks in the real environment; "exhaustive" walks every start with every
    goal on the transition table. By default exhaustive where the layout is known, else paper.
    env: an environment of your own to plan in, with goals and Discrete actions, by the paper's protocol.
    """

    def __init__(
        self,
        dataset: Dataset,
        protocol: Protocol | None = None,
        episodes: int | None = None,
        seed: int = 0,
        env: Env | None = None,
        max_steps: int = MAX_STEPS,
    ) -> None:
        self.dataset = dataset
        self.seed = seed
        self.env = env
        self.max_steps = max_steps
        self.tabled = len(dataset.observations) <= MAX_TABLE
        self.truth = None if dataset.layout is None else ground_truth(dataset.layout)
        self.protocol = self._choose(protocol)
        if episodes is not None and self.protocol != "paper":
            raise ConfigError("episodes: a number of sampled tasks needs the paper's protocol")
        if episodes is not None and episodes < 1:
            raise ConfigError(f"episodes: must be at least 1 (got {episodes})")
        self.episodes = episodes or EPISODES
        self.starts = self.goals = np.empty(0, np.int64)
        self._cut_at = max_steps  # the steps after which the environment itself ended an episode, if it did
        if env is not None:
            check_env(env, dataset.header.spaces)
        elif self.truth is not None:
            self.truth.check_tasks()
            rng = np.random.default_rng(derived_seed(seed, "tasks"))
            sampled = self.protocol == "paper"
            self.starts, self.goals = (
                self.truth.sample_tasks(rng, self.episodes) if sampled else exhaustive_tasks(self.truth)
            )

    def _choose(self, protocol: Protocol | None) -> Protocol | None:
        if protocol not in (None, "paper", "exhaustive"):
            raise ConfigError(unknown_name("protocol", protocol, ["paper", "exhaustive"]))
        if self.env is not None:
            if protocol == "exhaustive":
                raise ConfigError("the exhaustive protocol walks a layout, not an environment: use the paper's")
            return "paper"
        if self.truth is None:
            if protocol is not None:
                raise WorldError(f"the {protocol} protocol needs a world: without a layout, name an environment")
            return None
        if protocol == "exhaustive" and not self.tabled:
            raise ConfigError(f"the exhaustive protocol needs at most {MAX_TABLE:,} states: use the paper's")
        return protocol or ("exhaustive" if self.tabled else "paper")

    @property
    def notices(self) -> list[str]:
        """What a reader of the results should know; complete once something has been scored."""
        found = []
        if self.truth is None:
            found.append("the dataset has no layout: nothing is compared with the truth")
        elif self.env is not None:
            found.append("distances are compared with the truth of the dataset's layout, not of the environment")
        if self.protocol is None:
            found.append("there is no world to plan in: name an environment with --env")
        if not self.tabled:
            found.append(f"more than {MAX_TABLE:,} distinct states: not all pairs are looked at")
        if self._cut_at < self.max_steps:
            found.append(f"the environment ends episodes itself after {self._cut_at} of {self.max_steps} steps")
        return found

    # What is scored

    def agent(self, agent: Agent, name: str) -> Subject:
        """A trained agent, ready to be scored."""
        spec, spaces = agent.model.spec, self.dataset.header.spaces
        if (spec.observation_dim, spec.num_actions) != (spaces.observation_dim, spaces.num_actions):
            raise ShapeError(
                f"the agent knows observations of {spec.observation_dim} numbers and {spec.num_actions} actions, "
                f"but the dataset has {spaces.observation_dim} and {spaces.num_actions}"
            )
        if not self.tabled:
            return Subject(name, agent, None, agent)
        observations = self.dataset.observations
        steps = agent.all_steps_to_goal(observations)
        return Subject(name, TablePolicy.greedy(steps, observations, self.seed, otherwise=agent), steps, agent)

    def reference(self, name: str) -> Subject:
        """One of `REFERENCES`, ready to be scored."""
        if name not in REFERENCES:
            raise ConfigError(unknown_name("reference", name, list(REFERENCES)))
        if name == "random":
            seed = derived_seed(self.seed, "random actions")
            return Subject(name, RandomPolicy(self.dataset.header.spaces.num_actions, seed))
        reason = self._impossible(name)
        if reason is not None:
            raise DatasetError(reason)
        if name == "oracle":
            assert self.truth is not None
            steps = oracle_steps(self.truth)
        else:
            steps = empirical_steps(self.dataset)
        return Subject(name, TablePolicy.greedy(steps, self.dataset.observations, self.seed), steps)

    def references(self) -> list[Subject]:
        """All that can be scored here."""
        names = [] if self.protocol is None else [name for name in REFERENCES if self._impossible(name) is None]
        return [self.reference(name) for name in names]

    def _impossible(self, reference: str) -> str | None:
        """Why a reference cannot be scored here."""
        if reference == "oracle" and (self.truth is None or self.env is not None):
            return "the oracle needs the layout of the world that is planned in"
        if reference != "random" and not self.tabled:
            return f"the {reference} needs at most {MAX_TABLE:,} distinct states"
        return None

    def score(self, subject: Subject) -> Results:
        known = measured = None
        seed = derived_seed(self.seed, "axioms")
        if self.truth is not None and subject.steps is not None:
            known = distances(subject.steps, self.truth, self.dataset)
        if subject.agent is not None:
            measured = axioms(subject.agent, subject.steps, self.dataset, self.truth, seed)
        return Results(
            **dict(self._plan(subject.policy)),
            name=subject.name,
            protocol=self.protocol,
            max_steps=self.max_steps,
            seed=self.seed,
            unreachable_tasks=self._unreachable_tasks(),
            all_pairs=self._plan_all_pairs(subject.policy),
            distances=known,
            axioms=measured,
        )

    # One task, to be looked at

    def goal_state(self, goal: Cell | None = None) -> int:
        """The state of a goal cell; by default a goal of middling distance from all states."""
        if self.truth is None:
            raise WorldError("a goal cell needs a layout, and the dataset has none")
        if goal is not None:
            return self.truth.layout.state_at(*goal)
        goals = self.truth.layout.goals
        away = self.truth.distances[:, goals]
        mean = np.where(np.isfinite(away), away, 0).sum(0) / np.isfinite(away).sum(0)
        return int(goals[np.argsort(mean, kind="stable")[len(mean) // 2]])

    def task(self, start: Cell | None = None, goal: Cell | None = None) -> tuple[int, int]:
        """The states of a task in the layout; by default the start is the one farthest from the goal."""
        target = self.goal_state(goal)
        assert self.truth is not None
        layout = self.truth.layout
        if start is None:
            away = self.truth.distances[layout.starts, target]
            state = int(layout.starts[np.where(np.isfinite(away), away, -1).argmax()])
        else:
            state = layout.state_at(*start)
        if state == target:
            raise WorldError(f"start and goal are both the cell {tuple(layout.cells[state].tolist())}; choose another")
        return state, target

    def check_play(self, start: Cell | None = None, goal: Cell | None = None) -> None:
        """Refuse what `play` cannot do, before any work is done."""
        if self.env is not None:
            if start is not None or goal is not None:
                raise WorldError("an environment of your own draws its tasks itself: leave out start and goal")
            if self.env.render_mode != "rgb_array":
                raise WorldError("the environment gives no frames: make it with render_mode='rgb_array'")
        elif self.truth is None:
            raise WorldError("there is no world to show: name an environment with --env")
        else:
            self.task(start, goal)

    def play(self, policy: Policy, start: Cell | None = None, goal: Cell | None = None) -> Episode:
        """One task in the real environment, with frames."""
        self.check_play(start, goal)
        if self.env is not None:
            return play(self.env, policy, self.max_steps, render=True, seed=self.seed)
        state, target = self.task(start, goal)
        assert self.truth is not None
        layout = self.truth.layout
        env = open_env(ENV_ID, layout=layout, max_steps=self.max_steps, render_mode="rgb_array", tile_size=20)
        options = {"start": layout.cells[state], "goal": layout.cells[target]}
        return play(env, policy, self.max_steps, render=True, options=options)

    # Planning

    def _plan(self, policy: Policy) -> Planning:
        if self.env is not None:
            episodes = play_seeds(self.env, policy, self.episodes, self.seed, self.max_steps)
            cut = (len(each.actions) for each in episodes if each.cause not in ("", "ended"))
            self._cut_at = min(self._cut_at, *cut, self.max_steps)
            return planning(outcome(episodes), sampled=True)
        if self.truth is None:
            return Planning()
        exact = self.truth.distances[self.starts, self.goals]
        if self.protocol == "paper":
            played = play_tasks(self.truth.layout, policy, self.starts, self.goals, self.max_steps)
            return planning(outcome(played), exact, buckets(self.truth), sampled=True)
        assert isinstance(policy, TablePolicy | RandomPolicy)
        walked = policy.walk(self.truth, self.starts, self.goals, self.max_steps)
        return planning(walked, exact, buckets(self.truth))

    def _plan_all_pairs(self, policy: Policy) -> Planning | None:
        if self.truth is None or self.protocol != "exhaustive":
            return None
        assert isinstance(policy, TablePolicy | RandomPolicy)
        reachable = np.isfinite(self.truth.distances)
        np.fill_diagonal(reachable, False)
        starts, goals = np.nonzero(reachable)
        walked = policy.walk(self.truth, starts, goals, self.max_steps)
        return planning(walked, self.truth.distances[starts, goals], buckets(self.truth))

    def _unreachable_tasks(self) -> int | None:
        if self.truth is None or self.protocol != "exhaustive":
            return None
        return len(self.truth.layout.starts) * len(self.truth.layout.goals) - len(self.starts)


def planning(
    result: Outcome, exact: NDArray[np.float32] | None = None, ranges: Sequence[Range] = (), sampled: bool = False
) -> Planning:
    """Summarise tasks; `exact` are their true distances, where known."""
    success, steps = result.success, result.steps
    made = Planning(
        success_rate=float(success.mean()),
        success_interval=wilson_interval(int(success.sum()), len(success)) if sampled else None,
        tasks=len(success),
        failures={cause: int((result.cause == cause).sum()) for cause in CAUSES},
    )
    if exact is None:
        return made
    excess = (steps - exact)[success]
    inside = {(low, high): (low <= exact) & (exact <= high) for low, high in ranges}
    return made.model_copy(
        update={
            "spl": float(np.where(success, exact / np.maximum(steps, exact), 0).mean()),
            "excess_steps": float(excess.mean()) if len(excess) else None,
            "success_by_distance": [
                Bucket(low=low, high=high, tasks=int(chosen.sum()), success_rate=float(success[chosen].mean()))
                for (low, high), chosen in inside.items()
                if chosen.any()
            ],
        }
    )
