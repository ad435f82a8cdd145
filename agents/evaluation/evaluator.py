"""Plans the same tasks with every planner, and compares its distances with the ground truth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from qrl.agents.evaluation.measurements import Measurements, Range, Tasks, distance_ranges
from qrl.agents.evaluation.metric import Metric, Value
from qrl.agents.evaluation.metrics import ERRORS, METRICS, TASKS
from qrl.agents.evaluation.notices import axiom_notices, chance_notices, world_notices
from qrl.agents.evaluation.results import REFERENCES, DistanceRow, Evaluation, ProtocolName, Results
from qrl.agents.evaluation.statistics import wilson_interval
from qrl.agents.evaluation.validation import Validation
from qrl.agents.planning.agent import Agent
from qrl.agents.planning.empirical_graph import Memory
from qrl.agents.planning.planner import (
    MAX_STEPS,
    GreedyPolicy,
    LazyPolicy,
    Policy,
    RandomPolicy,
    Steps,
    TablePolicy,
    WalkingPolicy,
    as_rows,
    follow,
)
from qrl.agents.planning.references import lazy_oracle, oracle_steps
from qrl.agents.planning.rollouts import Env, check_env, outcome, play_seeds, play_tasks
from qrl.common.errors import ConfigError
from qrl.common.names import unknown_name
from qrl.common.seeds import derived_seed
from qrl.envs.dataset import Dataset
from qrl.envs.errors import DatasetError, WorldError
from qrl.envs.ground_truth import MAX_TABLE, ground_truth
from qrl.errors import ShapeError

EPISODES = 50  # the paper's number of sampled tasks


@dataclass(frozen=True)
class Subject:
    """What is evaluated: a policy and, optionally, its estimated steps to the goal and its validation."""

    name: str
    policy: Policy
    steps: Steps | None = None
    agent: Agent | None = None
    validation: Validation | None = None


class Evaluator:
    """The tasks and the ground truth of one evaluation.

    dataset: gives the states and, with its world, the ground truth.
    protocol: "paper" steps `episodes` sampled tasks, in the environment if the world has one; "exhaustive" walks every
    start with every goal on the transition table. By default exhaustive where the world is known, else paper.
    env: an environment of your own to plan in, with goals and Discrete actions, by the paper's protocol.
    memory: the data of the empirical graph, where it is not the dataset.
    """

    def __init__(
        self,
        dataset: Dataset,
        protocol: ProtocolName | None = None,
        episodes: int | None = None,
        seed: int = 0,
        env: Env | None = None,
        max_steps: int = MAX_STEPS,
        memory: Dataset | None = None,
    ) -> None:
        self.dataset = dataset
        self.seed = seed
        self.env = env
        self.max_steps = max_steps
        self.truth = None if dataset.world is None else ground_truth(dataset.world)
        self.observations = _states(dataset, seed)
        self._memory = Memory(dataset) if memory is None else Memory(memory, as_rows(self.observations))
        self._elsewhere = memory is not None
        self._unknown = dataset.noisy or self._memory.empty  # the empirical graph knows no state that it meets
        self.tabulated = len(self.observations) <= MAX_TABLE
        self.protocol = self._choose(protocol)
        if episodes is not None and self.protocol != "paper":
            raise ConfigError("episodes: a number of sampled tasks needs the paper's protocol")
        if episodes is not None and episodes < 1:
            raise ConfigError(f"episodes: must be at least 1 (got {episodes})")
        self.episodes = episodes or EPISODES
        self.starts = self.goals = np.empty(0, np.int64)
        self._cut_at = max_steps  # steps after which the environment itself ended an episode, if it did
        if env is not None:
            check_env(env, dataset.header.spaces)
        elif self.truth is not None:
            self.truth.check_tasks()
            rng = np.random.default_rng(derived_seed(seed, "tasks"))
            sampled = self.protocol == "paper"
            self.starts, self.goals = self.truth.sample_tasks(rng, self.episodes) if sampled else self.truth.all_tasks()

    def _choose(self, protocol: ProtocolName | None) -> ProtocolName | None:
        if protocol not in (None, "paper", "exhaustive"):
            raise ConfigError(unknown_name("protocol", protocol, ["paper", "exhaustive"]))
        if self.env is not None:
            if protocol == "exhaustive":
                raise ConfigError("the exhaustive protocol walks a world, not an environment: use the paper's")
            return "paper"
        if self.truth is None:
            if protocol is not None:
                raise WorldError(f"the {protocol} protocol needs a world: the dataset has none, name an environment")
            return None
        if protocol == "exhaustive" and not self.tabulated:
            raise ConfigError(f"the exhaustive protocol needs at most {MAX_TABLE:,} states: use the paper's")
        return protocol or ("exhaustive" if self.tabulated else "paper")

    @property
    def experience(self) -> Dataset | None:
        """The data, if it tells which states of this world were seen in training."""
        return None if self.dataset.noisy or self._elsewhere else self.dataset

    @property
    def notices(self) -> list[str]:
        """What a reader of the results should know; complete once something has been scored."""
        notices = []
        if self.truth is None:
            notices.append("the dataset has no world: nothing is compared with exact distances")
        elif self.env is not None:
            notices.append("distances are compared with those of the dataset's world, not of the environment")
        if self.protocol is None:
            notices.append("there is no world to plan in; evaluate-planning --env plans in an environment of yours")
        if not self.tabulated:
            notices.append(f"more than {MAX_TABLE:,} distinct states: not all pairs are evaluated")
        if self._cut_at < self.max_steps:
            notices.append(f"the environment itself ends episodes after {self._cut_at} of {self.max_steps} steps")
        if self._unknown and not self.dataset.noisy:
            notices.append("the data contains no state of this world: the empirical graph acts at random")
        if self.truth is not None:
            notices += world_notices(self.truth.world)
        return notices

    # What is scored

    def agent(self, agent: Agent, name: str) -> Subject:
        """A trained agent, ready to be scored."""
        num_actions, spaces = agent.model.spec.num_actions, self.dataset.header.spaces
        if (agent.observation_dim, num_actions) != (spaces.observation_dim, spaces.num_actions):
            raise ShapeError(
                f"the agent takes {agent.observation_dim}-dimensional observations and has {num_actions} actions, "
                f"but the dataset has {spaces.observation_dim} and {spaces.num_actions}"
            )
        if not self.tabulated:
            return Subject(name, agent if self.truth is None else agent.policy_in(self.truth.world), None, agent)
        costs = agent.all_costs(self.observations)
        steps = costs if agent.learns == "distances" else None
        if self.dataset.noisy and self.protocol == "paper" and self.truth is not None:
            return Subject(name, agent.policy_in(self.truth.world), steps, agent)
        return Subject(name, TablePolicy.greedy(costs, self.observations, self.seed, fallback=agent), steps, agent)

    def reference(self, name: str) -> Subject:
        """One of `REFERENCES`, ready to be scored."""
        if name not in REFERENCES:
            raise ConfigError(unknown_name("reference", name, list(REFERENCES)))
        if name == "random" or (name == "empirical-graph" and self._unknown):
            seed = derived_seed(self.seed, "random actions")
            return Subject(name, RandomPolicy(self.dataset.header.spaces.num_actions, seed))
        reason = self._impossible(name)
        if reason is not None:
            raise DatasetError(reason)
        if name == "oracle":
            assert self.truth is not None
            if not self.tabulated:
                return Subject(name, lazy_oracle(self.truth, self.goals, self.seed))
            steps = oracle_steps(self.truth)
        elif self.tabulated:
            steps = self._memory.all_steps()
        else:
            fallback = self.reference("random").policy
            return Subject(name, LazyPolicy(self._memory.steps, self.observations, self.seed, fallback))
        return Subject(name, TablePolicy.greedy(steps, self.observations, self.seed), steps)

    def references(self) -> list[Subject]:
        """All that can be scored here."""
        names = [] if self.protocol is None else [name for name in REFERENCES if self._impossible(name) is None]
        return [self.reference(name) for name in names]

    def _impossible(self, reference: str) -> str | None:
        """Why a reference cannot be scored here."""
        if reference == "oracle" and (self.truth is None or self.env is not None):
            return "the oracle needs to know the world that is planned in"
        if reference == "empirical-graph" and not (self._unknown or self._memory.fits):
            return f"the {reference} needs at most {MAX_TABLE:,} distinct states that are connected"
        return None

    # Scores

    def score(self, subject: Subject) -> Results:
        tasks = self._plan(subject.policy)
        exhaustive = self.protocol == "exhaustive" and self.env is None
        measurements = Measurements(
            tasks=tasks,
            dataset=self.dataset,
            truth=self.truth,
            policy=subject.policy if exhaustive and isinstance(subject.policy, WalkingPolicy) else None,
            steps=subject.steps,
            agent=subject.agent,
            validation=subject.validation,
            seed=derived_seed(self.seed, "axioms"),
            max_steps=self.max_steps,
            elsewhere=self._elsewhere,
        )
        ranges = self._ranges(tasks)
        estimates = measurements.reachable
        compared = [] if estimates is None else [(ends, estimates.between(*ends)) for ends in ranges]
        sampled = tasks is not None and self.protocol == "paper"
        return Results(
            name=subject.name,
            protocol=self.protocol,
            max_steps=self.max_steps,
            seed=self.seed,
            values={metric.key: _value(metric, measurements) for metric in METRICS},
            success_interval=wilson_interval(int(tasks.success.sum()), len(tasks)) if tasks and sampled else None,
            success_by_distance=_success_rows(tasks, ranges),
            all_pairs_by_distance=_success_rows(measurements.all_pairs, ranges),
            errors_by_distance=[_row(ends, ERRORS, part) for ends, part in compared],
        )

    def evaluate(
        self, subject: Subject, *, references: bool = True, notices: list[str] | None = None, **origin: object
    ) -> Evaluation:
        """The results of a subject and of the references; `origin` are the keys of `Evaluation` about its run."""
        others = [other for other in self.references() if other.name != subject.name] if references else []
        planners = tqdm([subject, *others], desc="evaluating", unit=" planners", delay=5, disable=None, leave=False)
        results, *scores = [self.score(planner) for planner in planners]
        random = next((score.success_rate for score in scores if score.name == "random"), None)
        about = [*chance_notices(subject.name, results.success_rate, random), *(notices or [])]
        return Evaluation(
            results,
            scores,
            repr(self.dataset),
            self.dataset.content_hash,
            [*about, *axiom_notices(subject.name, subject.agent, results), *self.notices],
            **origin,  # type: ignore[arg-type]
        )

    def _plan(self, policy: Policy) -> Tasks | None:
        if self.env is not None:
            episodes = play_seeds(self.env, policy, self.episodes, self.seed, self.max_steps)
            cut = (len(episode.actions) for episode in episodes if episode.cause not in ("", "ended"))
            self._cut_at = min(self._cut_at, *cut, self.max_steps)
            return Tasks.of(outcome(episodes))
        if self.truth is None:
            return None
        exact = self.truth.between(self.starts, self.goals)
        if self.protocol == "paper" and self.tabulated and self.in_env:  # in a large world, walking is much faster
            played = play_tasks(self.truth.layout, policy, self.starts, self.goals, self.max_steps)
            return Tasks.of(outcome(played), exact)
        assert isinstance(policy, GreedyPolicy | RandomPolicy)
        if self.protocol == "paper":
            return Tasks.of(policy.walk(self.truth, self.starts, self.goals, self.max_steps), exact)
        assert isinstance(policy, WalkingPolicy)
        return Tasks.of(follow(policy, self.truth, self.starts, self.goals, self.max_steps), exact)

    @property
    def in_env(self) -> bool:
        """Whether sampled tasks are stepped in an environment, not on the transition table."""
        return self.env is not None or (self.truth is not None and self.truth.world.has_env)

    def _ranges(self, tasks: Tasks | None) -> list[Range]:
        if self.truth is None:
            return []
        if self.tabulated:
            return distance_ranges(self.truth.distances)
        return [] if tasks is None or tasks.exact is None else distance_ranges(tasks.exact)


def _states(dataset: Dataset, seed: int) -> NDArray[np.float32]:
    """(states, dim): an observation of every state of the world, or of the dataset if there is none."""
    if not dataset.noisy or dataset.world is None:
        return dataset.observations
    rng = np.random.default_rng(derived_seed(seed, "observations"))
    return dataset.world.observe(np.arange(dataset.world.num_states), rng)


def _value(metric: Metric, part: object) -> Value:
    value = metric.compute(part)
    return value if value is None or metric.digits else round(value)  # digits 0: a count


def _row(ends: Range, metrics: list[Metric], part: object) -> DistanceRow:
    return {"low": ends[0], "high": ends[1], **{metric.key: _value(metric, part) for metric in metrics}}


def _success_rows(tasks: Tasks | None, ranges: list[Range]) -> list[DistanceRow]:
    """Number of tasks and success rate by exact distance."""
    if tasks is None or tasks.exact is None:
        return []
    metrics = [metric for metric in TASKS if metric.by_distance]
    parts = [(ends, tasks.between(*ends)) for ends in ranges]
    return [_row(ends, metrics, part) for ends, part in parts if len(part)]
