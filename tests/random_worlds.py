"""Random worlds for tests, as a hypothesis strategy, and slow references for their distances."""

from collections import deque

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from qrl.envs.world import World


@st.composite
def worlds(draw: st.DrawFn, stochastic: bool = False, max_states: int = 8) -> World:
    """With any transitions; where they are stochastic, an outcome may occur twice or with probability 0."""
    count, actions = draw(st.integers(2, max_states)), draw(st.integers(1, 3))
    outcomes = draw(st.integers(1, 3)) if stochastic else 1
    state = st.integers(0, count - 1)
    size = count * actions * outcomes
    transitions = np.array(draw(st.lists(state, min_size=size, max_size=size))).reshape(count, actions, outcomes)
    weights = np.array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))).reshape(transitions.shape)
    weights[..., 0] += 1
    order = draw(st.permutations(range(count)))
    return World(
        "random",
        observations=np.eye(count),
        transitions=transitions if stochastic else transitions[..., 0],
        probabilities=weights / weights.sum(-1, keepdims=True) if stochastic else None,
        starts=order[: draw(st.integers(1, count))],
        goals=order[-draw(st.integers(1, count)) :],
        discount=draw(st.sampled_from([0.5, 0.9, 0.95])),
    )


def searched_distances(world: World) -> NDArray[np.float64]:
    """Breadth-first search from every state of a deterministic world."""
    distances = np.full((world.num_states, world.num_states), np.inf)
    for start in range(world.num_states):
        distances[start, start] = 0
        queue = deque([start])
        while queue:
            state = queue.popleft()
            for following in world.transitions[state]:
                if np.isinf(distances[start, following]):
                    distances[start, following] = distances[start, state] + 1
                    queue.append(following)
    return distances


def iterated_distances(world: World, updates: int = 3000) -> NDArray[np.float64]:
    """One Bellman update after the other, one state, action and goal at a time."""
    count, gamma = world.num_states, world.discount
    distances = np.empty((count, count))
    for goal in range(count):
        values = np.zeros(count)
        for _ in range(updates):
            before = values.copy()
            for state in range(count):
                expected = [
                    sum(p * values[end] for p, end in zip(*action, strict=True))
                    for action in zip(world.probabilities[state], world.transitions[state], strict=True)
                ]
                values[state] = 1 if state == goal else gamma * max(expected)
            if np.array_equal(values, before):
                break
        with np.errstate(divide="ignore"):
            distances[:, goal] = np.log(values) / np.log(gamma)
    return distances
