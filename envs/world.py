"""A world: finitely many states with observations, transitions and tasks. Everything exact is derived from it."""

import hashlib
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrl.envs.errors import WorldError

if TYPE_CHECKING:
    from qrl.envs.layout import Layout

Ids = NDArray[np.int64]
AnyIds = NDArray[np.integer[Any]]

MAX_STATES = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """A valid world; array-likes are converted and checked.

    observations: (states, dim), finite.
    transitions: (states, actions), the next state; or (states, actions, outcomes) with their `probabilities`.
    starts, goals: states; a task is a start and a different goal.
    cells: (states, 2), the cell (x, y) in which a state is drawn, if the world has a map. States may share a cell.
    layout: the walls and doors of the map, if it was written as one.
    discount: gamma of the exact distances of a stochastic world, log_gamma max_pi E[gamma^T]; hop counts need none.
    noise, distractors: what every visit adds anew to the observation, a standard deviation of Gaussian noise and a
    number of dimensions of nothing but standard Gaussian noise.
    """

    name: str
    observations: Any
    transitions: Any
    starts: Any
    goals: Any
    probabilities: Any = None
    cells: Any = None
    layout: "Layout | None" = None
    discount: float = 0.95
    noise: float = 0
    distractors: int = 0

    def __post_init__(self) -> None:
        observations = self._array("observations", self.observations, "float") + np.float32(0)  # turns -0 into 0
        if observations.ndim != 2 or not observations.size:
            raise self._error(f"observations must have the shape (states, dim), not {observations.shape}")
        if len(observations) > MAX_STATES:
            raise self._error(f"{len(observations):,} states, but at most {MAX_STATES:,} are supported")
        if not np.isfinite(observations).all():
            state = int(np.flatnonzero(~np.isfinite(observations).all(1))[0])
            raise self._error(f"the observation of state {state} is not finite")
        self._set(observations=observations)
        self._set_transitions()
        for key in ("starts", "goals"):
            self._set(**{key: self._states(key, getattr(self, key))})
        if self.cells is not None:
            cells = self._array("cells", self.cells, "int")
            if cells.shape != (self.num_states, 2) or cells.min() < 0:
                raise self._error(f"cells must be (x, y) from 0 for each of {self.num_states} states")
            self._set(cells=cells)
        if not 0 < self.discount < 1:
            raise self._error(f"discount must be between 0 and 1 (got {self.discount})")
        if self.noise < 0 or self.distractors < 0:
            raise self._error(f"noise and distractors must be at least 0 (got {self.noise} and {self.distractors})")

    def _set_transitions(self) -> None:
        transitions, count = self._array("transitions", self.transitions, "int"), self.num_states
        if transitions.ndim not in (2, 3) or len(transitions) != count or not transitions.size:
            raise self._error(
                f"transitions must have the shape ({count}, actions) or ({count}, actions, outcomes), not "
                f"{transitions.shape}"
            )
        outside = np.argwhere((transitions < 0) | (transitions >= count))
        if len(outside):
            state, action, *_ = outside[0].tolist()
            raise self._error(
                f"action {action} of state {state} leads to state {transitions[tuple(outside[0])]}, but states are "
                f"numbered from 0 to {count - 1}"
            )
        probabilities = None
        if transitions.ndim == 3:
            probabilities = self._checked_probabilities(transitions)
            if (probabilities.max(-1) == 1).all():  # one outcome each: deterministic after all
                likely = probabilities.argmax(-1)[..., None]
                transitions, probabilities = np.take_along_axis(transitions, likely, -1)[..., 0], None
        elif self.probabilities is not None:
            raise self._error("probabilities need transitions of the shape (states, actions, outcomes)")
        self._set(transitions=transitions, probabilities=probabilities)

    def _checked_probabilities(self, transitions: Ids) -> NDArray[np.float64]:
        if self.probabilities is None:
            raise self._error("transitions with several outcomes need their probabilities")
        probabilities = self._array("probabilities", self.probabilities, "probability")
        if probabilities.shape != transitions.shape:
            raise self._error(
                f"probabilities must have the shape of the transitions, {transitions.shape}, not {probabilities.shape}"
            )
        total = probabilities.sum(-1)
        wrong = np.argwhere(~((probabilities >= 0).all(-1) & (np.abs(total - 1) < 1e-6)))
        if len(wrong):
            state, action = wrong[0].tolist()
            raise self._error(
                f"the probabilities of action {action} in state {state} are {probabilities[state, action].tolist()}; "
                "they must be at least 0 and sum to 1"
            )
        normalized: NDArray[np.float64] = probabilities / total[..., None]
        return normalized

    def _states(self, key: str, values: ArrayLike) -> Ids:
        states = self._array(key, values, "int")
        if states.ndim != 1 or not len(states):
            raise self._error(f"{key} must name at least one state")
        if states.min() < 0 or states.max() >= self.num_states or len(np.unique(states)) != len(states):
            raise self._error(f"{key} must be different states from 0 to {self.num_states - 1}")
        return states

    def _array(self, key: str, values: ArrayLike, kind: Literal["int", "float", "probability"]) -> NDArray[Any]:
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise self._error(f"{key} are not an array ({error})") from None
        wanted = np.integer if kind == "int" else np.number
        if not np.issubdtype(array.dtype, wanted) or np.issubdtype(array.dtype, np.complexfloating):
            raise self._error(f"{key} must be an array of {'integers' if kind == 'int' else 'numbers'}")
        dtype = {"int": np.int64, "float": np.float32, "probability": np.float64}[kind]
        copy: NDArray[Any] = array.astype(dtype)
        return copy

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            if value is not None:
                value.setflags(write=False)
            object.__setattr__(self, key, value)

    def _error(self, message: str) -> WorldError:
        return WorldError(f"world {self.name}: {message}")

    @property
    def num_states(self) -> int:
        return len(self.observations)

    @property
    def num_actions(self) -> int:
        return int(self.transitions.shape[1])

    @property
    def observation_dim(self) -> int:
        return int(self.observations.shape[1]) + self.distractors

    @property
    def noisy(self) -> bool:
        """Whether no observation repeats."""
        return self.noise > 0 or self.distractors > 0

    def observe(self, states: AnyIds, rng: np.random.Generator) -> NDArray[np.float32]:
        """(n, observation_dim): observations of the states, with new noise."""
        rows: NDArray[np.float32] = self.observations[states]
        if self.noisy:
            # One call, so that fewer rows get the numbers of the first of more.
            signal, added = np.split(rng.standard_normal((len(rows), self.observation_dim)), [rows.shape[1]], axis=1)
            rows = np.concatenate([rows + self.noise * signal, added], axis=1).astype(np.float32)
        return rows

    @property
    def deterministic(self) -> bool:
        return self.probabilities is None

    @property
    def has_env(self) -> bool:
        """Whether qrl/OneWayDoors-v0 steps this world: it is a layout, as it was written."""
        return self.layout is not None and self == self.layout.world

    def __repr__(self) -> str:
        kind = "deterministic" if self.deterministic else "stochastic"
        return f"World({self.name!r}, {self.num_states:,} states, {self.num_actions} actions, {kind})"

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of all that defines the world; its name does not."""
        digest = hashlib.sha256(f"discount {self.discount!r}".encode() if not self.deterministic else b"")
        if self.noisy:
            digest.update(f"noise {self.noise!r} {self.distractors}".encode())
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                digest.update(f"{field.name} {value.dtype.str} {value.shape}".encode())
                digest.update(np.ascontiguousarray(value).data)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, World) and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)

    @cached_property
    def notices(self) -> list[str]:
        """What a user may want to know of the world."""
        distinct = len(np.unique(self.observations, axis=0))
        if distinct == self.num_states:
            return []
        return [
            f"the {self.num_states:,} states of {self.name} have only {distinct:,} different observations: a model "
            "cannot tell apart those that look the same"
        ]

    def next_states(self, states: Ids, actions: Ids, rng: np.random.Generator) -> Ids:
        """What the actions lead to; drawn by their probabilities in a stochastic world."""
        outcomes: Ids = self.transitions[states, actions]
        if self.deterministic:
            return outcomes
        chances = self.probabilities[states, actions]
        passed = chances.cumsum(-1)[:, :-1] <= rng.random(len(states))[:, None]
        last_possible = (chances > 0).cumsum(-1).argmax(-1)  # the sum of the others may be rounded to below 1
        drawn = np.minimum(passed.sum(-1), last_possible)
        return np.take_along_axis(outcomes, drawn[:, None], -1)[:, 0]

    def possible(self, states: AnyIds, actions: AnyIds, following: AnyIds) -> NDArray[np.bool_]:
        """Which transitions can happen."""
        happens: NDArray[np.bool_]
        if self.deterministic:
            happens = self.transitions[states, actions] == following
        else:
            matches = self.transitions[states, actions] == following[:, None]
            happens = np.any(matches & (self.probabilities[states, actions] > 0), axis=-1)
        return happens

    def state_at(self, x: int, y: int) -> int:
        """The state of a cell: a goal, where several share it and one is a goal."""
        if self.layout is not None:
            return self.layout.state_at(x, y)
        if self.cells is None:
            raise self._error("it has no map, so that no cell can be named")
        states = np.flatnonzero((self.cells == (x, y)).all(1))
        if not len(states):
            raise self._error(f"no state is drawn in the cell ({x}, {y})")
        return int(next((state for state in states if state in self.goals), states[0]))
