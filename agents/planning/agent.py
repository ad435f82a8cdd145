"""A trained model for use: distances, steps to a goal and actions for plain observations."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from qrl.agents.errors import LearnerError
from qrl.agents.learners.settings import Learns
from qrl.agents.planning.planner import Ids, LazyPolicy, Steps, all_steps_to_goal, as_rows, greedy_actions, state_keys
from qrl.agents.scaling import Scaling
from qrl.common.seeds import derived_seed
from qrl.envs.world import World
from qrl.errors import ContractError, ShapeError
from qrl.q_models.base import QModel


class Agent:
    """Observations are arrays (..., observation_dim) as in the dataset; all leading dimensions broadcast.

    `seed` breaks ties between equally good actions. `learns`: what its learner learns, "distances" or only "scores" of
    actions, as behaviour cloning does.
    """

    deterministic = True

    def __init__(self, model: QModel, scaling: Scaling, seed: int = 0, learns: Learns = "distances") -> None:
        self.model = model.eval().requires_grad_(False)
        self.scaling = scaling
        self.seed = seed
        self.learns = learns

    @property
    def observation_dim(self) -> int:
        return self.scaling.observation_dim

    def __repr__(self) -> str:
        return f"Agent({type(self.model).__name__}, {self.model.spec})"

    def distance(
        self,
        observation: ArrayLike,
        goal: ArrayLike,
        action: ArrayLike | None = None,
        goal_action: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """The learned d((s, a), (g, a')); None stands for all actions and adds an axis, a's before a''s."""
        self._check_distances()
        a, b = (None if actions is None else self._actions(actions) for actions in (action, goal_action))
        return self._query(lambda s, g: self.model.distance(s, a, g, b), observation, goal)

    def steps_to_goal(self, observation: ArrayLike, goal: ArrayLike) -> NDArray[np.float32]:
        """(..., actions): learned steps that remain to the goal after each action."""
        self._check_distances()
        return self._query(self.model.steps_to_goal, observation, goal)

    def action_scores(self, observation: ArrayLike, goal: ArrayLike) -> NDArray[np.float32]:
        """(..., actions): how good each action is; minus the steps to go, or log-probabilities of a policy."""
        steps = self._query(self.model.steps_to_goal, observation, goal)
        if self.learns == "distances":
            return -steps
        scores: NDArray[np.float32] = torch.from_numpy(-steps).log_softmax(-1).numpy()
        return scores

    def act(self, observation: ArrayLike, goal: ArrayLike) -> int:
        """The action with the highest score, for one observation and one goal."""
        scores = self.action_scores(observation, goal)
        if scores.ndim != 1:
            raise ShapeError("act: give one observation and one goal; for many, take the argmax of action_scores")
        return int(greedy_actions(-scores, state_keys(observation), state_keys(goal), self.seed))

    def all_steps_to_goal(self, observations: NDArray[np.float32]) -> Steps:
        """(states, goals, actions): `steps_to_goal` between all pairs of states."""
        self._check_distances()
        return self.all_costs(observations)

    def all_costs(self, observations: NDArray[np.float32], goals: Ids | None = None) -> Steps:
        """(states, goals, actions): what the planner minimizes from all states to `goals`, by default all states."""
        return all_steps_to_goal(self.model, self.scaling(torch.tensor(observations)), goals)

    def policy_in(self, world: World) -> LazyPolicy:
        """The agent on the states of a world, without a table: there are too many, or each visit looks different."""
        rng = np.random.default_rng(derived_seed(self.seed, "observations"))

        def costs(states: Ids, goals: Ids) -> Steps:
            return -self.action_scores(world.observe(states, rng), world.observe(goals, rng))

        return LazyPolicy(costs, world.observations, self.seed, fallback=self, deterministic=not world.noisy)

    def _check_distances(self) -> None:
        if self.learns == "scores":
            raise LearnerError("this agent's learner learns scores of actions, not distances; ask for action_scores")

    @torch.no_grad()
    def _query(
        self, query: Callable[[Tensor, Tensor], Tensor], observation: ArrayLike, goal: ArrayLike
    ) -> NDArray[np.float32]:
        values: NDArray[np.float32] = query(self._encode(observation), self._encode(goal)).float().numpy()
        if np.isnan(values).any():  # an action would be chosen from them like from any others
            raise ContractError(f"{type(self.model).__name__} returned NaN; check its weights and the observations")
        return values

    def _actions(self, actions: ArrayLike) -> Tensor:
        ids, count = np.asarray(actions), self.model.spec.num_actions
        if not np.issubdtype(ids.dtype, np.integer) or ((ids < 0) | (ids >= count)).any():
            raise ShapeError(f"actions must be integers from 0 to {count - 1} (got {actions!r})")
        return torch.as_tensor(ids.astype(np.int64))

    def _encode(self, observation: ArrayLike) -> Tensor:
        rows = as_rows(observation)
        size = self.observation_dim
        if rows.ndim == 0 or rows.shape[-1] != size:
            raise ShapeError(f"observations have the shape {rows.shape}, but the agent needs (..., {size})")
        if not np.isfinite(rows).all():
            raise ShapeError("observations must be finite numbers")
        encoded = self.model.encode(self.scaling(torch.from_numpy(rows.reshape(-1, size))))
        return encoded.reshape(*rows.shape[:-1], *encoded.shape[1:])
