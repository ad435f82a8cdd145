"""How well a planner plans, and how near its distances are to the truth: every planner meets the same tasks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from torch import Tensor

from agents.agent import Agent
from agents.diagnostics import axioms, buckets, distances, reachable_pairs
from agents.planner import (
    MAX_STEPS,
    Outcome,
    Policy,
    RandomPolicy,
    Steps,
    TablePolicy,
    all_steps_to_goal,
    exhaustive_tasks,
)
from agents.references import empirical_steps, oracle_steps
from agents.results import REFERENCES, Bucket, Planning, Protocol, Results
from agents.rollout import Env, Episode, check_env, open_env, outcome, play, play_seeds, play_tasks
from envs.dataset import ENV_ID, Dataset
from envs.ground_truth import GroundTruth, ground_truth
from qrl.common.errors import ConfigError, DatasetError, ShapeError, WorldError
from qrl.common.names import unknown_name
from qrl.q_models.base import QModel

Cell = tuple[int, int]  # (x, y)

EPISODES = 50  # the paper's number of sampled tasks
MAX_TABLE = 2000  # distinct states of a dataset without a layout up to which all their pairs are tabled


def score(model: QModel, observations: Tensor, truth: GroundTruth, seed: int) -> dict[str, float]:
    """The few numbers that are worth their time during training: planning over all tasks, and errors of the steps."""
    steps = all_steps_to_goal(model, observations)
    walked = TablePolicy.greedy(steps, truth.layout.observations, seed).walk(truth, *exhaustive_tasks(truth))
    exact = oracle_steps(truth)
    compared = reachable_pairs(exact)
    error = steps[compared] - exact[compared]
    return {
        "success_rate": float(walked.success.mean()),
        "distance_error": float(error.mean()),
        "distance_absolute_error": float(np.abs(error).mean()),
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
        self.truth = None if dataset.layout is None else ground_truth(dataset.layout)
        self.protocol = self._choose(protocol)
        if episodes is not None and (self.protocol != "paper" or episodes < 1):
            raise ConfigError(f"episodes: the paper's protocol takes a number of at least 1 (got {episodes})")
        self.episodes = episodes or EPISODES
        if env is not None:
            check_env(env, dataset.header.spaces)
        self.starts = self.goals = np.empty(0, np.int64)
        if env is None and self.truth is not None:
            rng = np.random.default_rng(seed)
            sampled = self.protocol == "paper"
            self.starts, self.goals = (
                self.truth.sample_tasks(rng, self.episodes) if sampled else exhaustive_tasks(self.truth)
            )

    def _choose(self, protocol: Protocol | None) -> Protocol | None:
        if protocol not in (None, "paper", "exhaustive"):
            raise ConfigError(unknown_name("protocol", protocol, ["paper", "exhaustive"]))
        if self.env is not None and protocol == "exhaustive":
            raise ConfigError("the exhaustive protocol walks a layout, not an environment: use the paper's")
        if self.env is None and self.truth is None and protocol is not None:
            raise WorldError(
                f"the {protocol} protocol needs a world: the dataset has no layout, so name an environment"
            )
        if self.env is not None:
            return "paper"
        return protocol or (None if self.truth is None else "exhaustive")

    @property
    def notices(self) -> list[str]:
        found = []
        if self.truth is None:
            found.append("the dataset has no layout: nothing is compared with the truth")
        if self.protocol is None:
            found.append("there is no world to plan in: name an environment with --env")
        if self.truth is None and not self._tabled:
            found.append(f"more than {MAX_TABLE:,} distinct states: no empirical graph")
        return found

    @property
    def _tabled(self) -> bool:
        return self.truth is not None or len(self.dataset.observations) <= MAX_TABLE

    def agent(self, agent: Agent, name: str) -> Subject:
        """A trained agent, ready to be scored."""
        spec, spaces = agent.model.spec, self.dataset.header.spaces
        if (spec.observation_dim, spec.num_actions) != (spaces.observation_dim, spaces.num_actions):
            raise ShapeError(
                f"the agent knows observations of {spec.observation_dim} numbers and {spec.num_actions} actions, "
                f"but the dataset has {spaces.observation_dim} and {spaces.num_actions}"
            )
        if not self._tabled:
            return Subject(name, agent, None, agent)
        observations = self.dataset.observations
        steps = agent.all_steps_to_goal(observations)
        return Subject(name, TablePolicy.greedy(steps, observations, self.seed, otherwise=agent), steps, agent)

    def reference(self, name: str) -> Subject:
        """One of `REFERENCES`, ready to be scored."""
        if name not in REFERENCES:
            raise ConfigError(unknown_name("reference", name, list(REFERENCES)))
        if name == "random":
            return Subject(name, RandomPolicy(self.dataset.header.spaces.num_actions, self.seed))
        reason = self._impossible(name)
        if reason is not None:
            raise DatasetError(reason)
        steps = empirical_steps(self.dataset) if self.truth is None or name != "oracle" else oracle_steps(self.truth)
        return Subject(name, TablePolicy.greedy(steps, self.dataset.observations, self.seed), steps)

    def references(self) -> list[Subject]:
        """All that can be scored here."""
        names = [] if self.protocol is None else [name for name in REFERENCES if self._impossible(name) is None]
        return [self.reference(name) for name in names]

    def _impossible(self, reference: str) -> str | None:
        """Why a reference cannot be scored here."""
        if reference == "oracle" and (self.truth is None or self.env is not None):
            return "the oracle needs the layout of the world that is planned in"
        if reference == "empirical-graph" and not self._tabled:
            return f"the empirical graph needs at most {MAX_TABLE:,} distinct states"
        return None

    def score(self, subject: Subject) -> Results:
        known = None
        if self.truth is not None and subject.steps is not None:
            known = distances(subject.steps, self.truth, self.dataset)
        measured = None
        if subject.agent is not None:
            measured = axioms(subject.agent, subject.steps, self.dataset, self.truth, self.seed)
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

    def task(self, start: Cell | None = None, goal: Cell | None = None) -> tuple[int, int]:
        """The states of a task in the layout.

        By default the goal is one of middling distance from all states, and the start the one farthest from the goal.
        """
        if self.truth is None:
            raise WorldError("start and goal are cells of a layout, and the dataset has none: leave them out")
        layout, exact = self.truth.layout, self.truth.distances
        if goal is None:
            finite = np.where(np.isfinite(exact), exact, 0)[:, layout.goals]
            mean = finite.sum(0) / np.isfinite(exact)[:, layout.goals].sum(0)
            target = int(layout.goals[np.argsort(mean, kind="stable")[len(mean) // 2]])
        else:
            target = layout.state_at(*goal)
        if start is not None:
            return layout.state_at(*start), target
        away = exact[layout.starts, target]
        return int(layout.starts[np.where(np.isfinite(away), away, -1).argmax()]), target

    def play(self, policy: Policy, start: Cell | None = None, goal: Cell | None = None) -> Episode:
        """One task in the real environment, with frames."""
        if self.env is not None:
            if start is not None or goal is not None:
                raise WorldError("an environment of your own draws its tasks itself: leave out start and goal")
            if self.env.render_mode != "rgb_array":
                raise WorldError("the environment gives no frames: make it with render_mode='rgb_array'")
            return play(self.env, policy, self.max_steps, render=True, seed=self.seed)
        state, target = self.task(start, goal)
        assert self.truth is not None
        layout = self.truth.layout
        env = open_env(ENV_ID, layout=layout, max_steps=self.max_steps, render_mode="rgb_array", tile_size=20)
        options = {"start": layout.cells[state], "goal": layout.cells[target]}
        return play(env, policy, self.max_steps, render=True, options=options)

    def _plan(self, policy: Policy) -> Planning:
        if self.env is not None:
            episodes = play_seeds(self.env, policy, self.episodes, self.seed, self.max_steps)
            return planning(outcome(episodes), None, sampled=True)
        if self.truth is None:
            return Planning()
        exact = self.truth.distances[self.starts, self.goals]
        if self.protocol == "paper":
            played = play_tasks(self.truth.layout, policy, self.starts, self.goals, self.max_steps)
            return planning(outcome(played), exact, sampled=True)
        assert isinstance(policy, TablePolicy | RandomPolicy)
        return planning(policy.walk(self.truth, self.starts, self.goals, self.max_steps), exact, sampled=False)

    def _plan_all_pairs(self, policy: Policy) -> Planning | None:
        if self.truth is None or self.protocol != "exhaustive":
            return None
        assert isinstance(policy, TablePolicy | RandomPolicy)
        reachable = np.isfinite(self.truth.distances)
        np.fill_diagonal(reachable, False)
        starts, goals = np.nonzero(reachable)
        walked = policy.walk(self.truth, starts, goals, self.max_steps)
        return planning(walked, self.truth.distances[starts, goals], sampled=False)

    def _unreachable_tasks(self) -> int | None:
        if self.truth is None or self.protocol != "exhaustive":
            return None
        return len(self.truth.layout.starts) * len(self.truth.layout.goals) - len(self.starts)


def planning(result: Outcome, exact: NDArray[np.float32] | None, sampled: bool) -> Planning:
    """Summarise tasks; `exact` are their true distances, where known."""
    success, steps = result.success, result.steps
    interval = binomtest(int(success.sum()), len(success)).proportion_ci(method="wilson") if sampled else None
    causes, counts = np.unique(result.cause[~success], return_counts=True)
    made = Planning(
        success_rate=float(success.mean()),
        success_interval=None if interval is None else (float(interval.low), float(interval.high)),
        tasks=len(success),
        failures=dict(zip(causes.tolist(), counts.tolist(), strict=True)),
    )
    if exact is None:
        return made
    excess = (steps - exact)[success]
    by_distance = [(low, high, (low <= exact) & (exact <= high)) for low, high in buckets(float(exact.max()))]
    return made.model_copy(
        update={
            "spl": float(np.where(success, exact / np.maximum(steps, exact), 0).mean()),
            "excess_steps": float(excess.mean()) if len(excess) else None,
            "success_by_distance": [
                Bucket(low=low, high=high, tasks=int(inside.sum()), success_rate=float(success[inside].mean()))
                for low, high, inside in by_distance
                if inside.any()
            ],
        }
    )
