from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qrl.agents.errors import LearnerError
from qrl.agents.learners.bounds import Bound, make_bound, stochastic
from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.mbold import MboldLearner
from qrl.agents.learners.settings import GoalSettings, MboldSettings
from qrl.agents.planning import empirical_graph
from qrl.envs.collector import CollectorSettings, collect
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from tests.agents.learners.naive_objectives import shortest_ways
from tests.agents.learners.small_learners import SHORT, make_learner, traps
from tests.agents.worlds import corridor, every_transition

Kind = Literal["trajectory", "graph"]
KINDS: tuple[Kind, ...] = ("trajectory", "graph")
GOALS = GoalSettings(current=0.1, future=0.45, random=0.45)

# A loop of states 0 1 2 0 with action 0, then 0 3 with action 1; and 1 3 with action 1.
LOOP = Dataset.from_arrays(np.array([[0.0], [1], [2], [0], [3], [1], [3]]), [0, 0, 0, 1, 1], [4, 1], num_actions=2)


def batch(*columns: list[float]) -> Batch:
    """States, actions, next states, goals, goal actions and hindsight steps."""
    *ids, hindsight = map(torch.tensor, columns)
    return Batch(*[*(column.long() for column in ids), hindsight])


def bound_of(kind: Literal["auto", "trajectory", "graph"], dataset: Dataset) -> Bound:
    bound = make_bound(kind, dataset)
    assert bound is not None
    return bound


def test_bounds_by_hand() -> None:
    queries = batch(
        [0, 0, 0, 1, 0, 3],
        [0, 0, 0, 1, 1, 0],  # the last was never tried
        [1, 1, 1, 3, 3, 3],
        [0, 0, 3, 0, 3, 0],
        [0, 1, 0, 0, 1, 0],
        [3, 3, 4, torch.inf, 1, torch.inf],
    )
    assert bound_of("trajectory", LOOP)(queries).tolist() == [3, 3, 4, torch.inf, 1, torch.inf]
    # (0, 0) is its own goal; 0 1 2 0; 0 1 3; no path from 3; arrives; unknown.
    assert bound_of("graph", LOOP)(queries).tolist() == [0, 3, 2, torch.inf, 1, torch.inf]


def exact_distances(queries: Batch, layout: str) -> torch.Tensor:
    """d((s, a), (g, a_g)) in the world itself."""
    truth = ground_truth(load_layout(layout))
    s, a, _, g, b, _ = (tensor.numpy() for tensor in vars(queries).values())
    steps = 1 + truth.distances[truth.transitions[s, a], g]
    return torch.from_numpy(np.where((s == g) & (a == b), 0, steps))


@settings(max_examples=25)
@given(st.sampled_from(["corridor", "traps", "six-rooms"]), st.integers(1, 6), st.integers(0, 2**32), st.floats(0, 1))
def test_no_bound_is_below_the_exact_distance(layout: str, trajectories: int, seed: int, balanced: float) -> None:
    dataset = collect(CollectorSettings(layout=layout, trajectories=trajectories, max_steps=40, seed=seed))
    goals = GoalSettings(current=0.1, future=0.45, random=0.45, balanced=balanced)
    queries = GoalSampler(dataset, goals, seed).sample(300)
    exact = exact_distances(queries, layout)
    # A single short trajectory may hold one transition only.
    along = queries.hindsight if dataset.lengths.max() < 2 else bound_of("trajectory", dataset)(queries)
    graph = bound_of("graph", dataset)(queries)
    assert (along >= exact).all()
    assert (graph >= exact).all()
    assert (graph <= along).all()


@settings(max_examples=10)
@given(st.integers(1, 10), st.integers(0, 1000))
def test_the_graph_bound_is_the_shortest_way_in_the_data(trajectories: int, seed: int) -> None:
    dataset = collect(CollectorSettings(layout="traps", trajectories=trajectories, max_steps=20, seed=seed))
    queries = GoalSampler(dataset, GOALS, seed).sample(100)
    ways = shortest_ways(dataset)
    steps = bound_of("graph", dataset)(queries)
    for i, bound in enumerate(steps.tolist()):
        s, a, after, g, b, _ = (tensor[i].item() for tensor in vars(queries).values())
        assert bound == (0 if (s, a) == (g, b) else 1 + ways[int(after)].get(int(g), torch.inf))


@pytest.mark.parametrize("layout", ["corridor", "traps"])
def test_all_transitions_bound_exactly(layout: str) -> None:
    dataset = every_transition(layout)
    queries = GoalSampler(dataset, GOALS, seed=0).sample(3000)
    exact = exact_distances(queries, layout)
    assert exact.isinf().any() == (layout == "traps")
    assert torch.equal(bound_of("graph", dataset)(queries), exact)


def test_too_many_states_fall_back_to_trajectories(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = traps()
    queries = GoalSampler(dataset, GOALS, seed=0).sample(200)
    options = MboldSettings(bound="graph", **SHORT)
    assert make_learner(MboldLearner, options).notices() == []
    assert not torch.equal(bound_of("graph", dataset)(queries), queries.hindsight)
    monkeypatch.setattr(empirical_graph, "MAX_TABLE", 1)
    assert torch.equal(bound_of("graph", dataset)(queries), queries.hindsight)
    assert make_learner(MboldLearner, options).notices() == [
        "learner.bound: too many distinct states for shortest paths; trajectories bound the targets instead"
    ]
    with pytest.raises(LearnerError, match="only single transitions"):
        make_bound("graph", every_transition("traps"))


def test_single_transitions_have_no_trajectory_to_bound_by() -> None:
    with pytest.raises(LearnerError, match=r"learner\.bound: .* only single transitions, .* use bound=graph"):
        make_bound("trajectory", every_transition("corridor"))


@pytest.mark.parametrize("kind", KINDS)
def test_stochastic_data_is_refused(kind: Kind) -> None:
    # Action 1 of state 2 leads to 0, 3 and 0 again; action 0 of state 0 always to 2.
    rows = np.array([[0.0], [2], [0], [2], [3], [2], [0]])
    dataset = Dataset.from_arrays(rows, [0, 1, 0, 1, 1], [4, 1], num_actions=2)
    observed = {int(row[0]): state for state, row in enumerate(dataset.observations)}
    with pytest.raises(
        LearnerError,
        match=rf"stochastic, .* action 1 of state {observed[2]} leads to 2 different states; use bound=none",
    ):
        make_bound(kind, dataset)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stochastic_world_is_refused_whatever_its_data(kind: Kind) -> None:
    settings = CollectorSettings.from_values({"world": {"name": "layout", "slip": 0.1}, "trajectories": 1}, "test")
    with pytest.raises(LearnerError, match=r"learner\.bound: the world six-rooms with slip 0.1 is stochastic"):
        make_bound(kind, collect(settings))


def test_repeated_transitions_are_deterministic() -> None:
    assert stochastic(corridor()) is None
    assert stochastic(LOOP) is None


def test_auto_bounds_by_what_the_data_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = traps()
    queries = GoalSampler(dataset, GOALS, seed=0).sample(200)
    assert make_bound("none", dataset) is None
    assert torch.equal(bound_of("auto", dataset)(queries), bound_of("graph", dataset)(queries))
    assert make_bound("auto", every_transition("traps")) is not None  # the graph of single transitions
    monkeypatch.setattr(empirical_graph, "MAX_TABLE", 1)
    assert torch.equal(bound_of("auto", dataset)(queries), queries.hindsight)
    assert make_bound("auto", every_transition("traps")) is None


def test_auto_bounds_nothing_by_chance_and_says_so() -> None:
    settings = CollectorSettings.from_values({"world": {"name": "layout", "slip": 0.1}, "trajectories": 1}, "test")
    dataset = collect(settings)
    assert make_bound("auto", dataset) is None
    learner = make_learner(MboldLearner, MboldSettings(bound="auto", **SHORT), dataset=dataset)
    assert learner.notices() == [
        "learner.bound=auto bounds no targets: the world six-rooms with slip 0.1 is stochastic, so that no path in the "
        "data bounds a distance"
    ]
