import copy
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from qrl import QModelSpec, make_q_model
from qrl.agents.errors import TrainingError
from qrl.agents.evaluation.evaluator import score
from qrl.agents.learners.base import triangle_regulariser
from qrl.agents.learners.goal_sampler import Batch, GoalSampler
from qrl.agents.learners.mbold import MboldLearner, Triplets, mbold_loss, mbold_targets
from qrl.agents.learners.settings import GoalSettings, MboldSettings
from qrl.agents.planning.planner import all_steps_to_goal
from qrl.envs.dataset import Dataset
from qrl.envs.ground_truth import ground_truth
from qrl.envs.layout import load_layout
from qrl.q_models import QModel
from tests.agents.worlds import corridor

SPEC = QModelSpec(observation_dim=1, num_actions=2, discount=0.9)


class Table(QModel):
    """A Q-model that is a table of logits: D = sigmoid(table[s, a, g, a']); observations are the state ids."""

    def __init__(self, spec: QModelSpec, states: int, goal_kind: str = "state-action") -> None:
        super().__init__(spec)
        self.goal_kind = goal_kind  # type: ignore[assignment]
        self.goal_actions = spec.num_actions if goal_kind == "state-action" else 1
        self.logits = nn.Parameter(torch.zeros(states, spec.num_actions, states, self.goal_actions))

    def encode(self, observations: Tensor, counts: Tensor | None = None) -> Tensor:
        return observations

    def discounted(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        s, g = torch.broadcast_tensors(state[..., 0].long(), goal[..., 0].long())
        table = self.logits[s, :, g].sigmoid()
        if goal_action is not None:
            column = goal_action if self.goal_kind == "state-action" else torch.zeros_like(goal_action)
            table = table.gather(-1, column[..., None, None].expand(*table.shape[:-1], 1)).squeeze(-1)
        if action is not None:
            table = table.gather(s.ndim, action.view(*action.shape, *[1] * (table.ndim - s.ndim))).squeeze(s.ndim)
        return table

    def distance(self, state: Tensor, action: Tensor | None, goal: Tensor, goal_action: Tensor | None) -> Tensor:
        return self.discounted(state, action, goal, goal_action).log() / math.log(self.spec.discount)


def ids(count: int) -> Tensor:
    return torch.arange(float(count))[:, None]


def batch(*columns: list[int]) -> Batch:
    return Batch(*(torch.tensor(column) for column in columns))


def test_targets_by_hand() -> None:
    model = Table(SPEC, 3)
    with torch.no_grad():
        model.logits[1, 1, 2, 0] = 3.0  # the best of state 1's actions towards (2, 0)
    #                same pair, arrives, arrives but elsewhere the same state, bootstraps
    made = batch([0, 0, 0, 0], [1, 1, 0, 0], [1, 2, 0, 1], [0, 2, 0, 2], [1, 0, 1, 0])
    y = mbold_targets(model, ids(3), made)
    best = torch.tensor(3.0).sigmoid().item()
    assert y.tolist() == pytest.approx([1, 0.9, 0.9, 0.9 * best])


def test_targets_for_state_goals_by_hand() -> None:
    model = Table(SPEC, 3, "state")
    with torch.no_grad():
        model.logits[1, 1, 2] = 3.0
    made = batch([0, 0, 0], [1, 1, 0], [2, 1, 0], [2, 2, 2], [0, 0, 1])
    y = mbold_targets(model, ids(3), made)
    best = torch.tensor(3.0).sigmoid().item()
    assert y.tolist() == pytest.approx([1, 0.9 * best, 0.45])


def test_targets_are_clipped() -> None:
    class Wild(Table):
        def discounted(self, *arguments: Tensor | None) -> Tensor:
            return 100 * super().discounted(*arguments) - 50 * (arguments[0][..., 0] == 0).float()[..., None]  # type: ignore

    made = batch([0, 0], [0, 0], [1, 0], [2, 2], [0, 0])
    assert mbold_targets(Wild(SPEC, 3), ids(3), made).tolist() == [1, 0]


def test_loss_by_hand() -> None:
    model = Table(SPEC, 3)
    made = batch([0, 1], [1, 0], [1, 2], [2, 2], [0, 1])
    loss, parts = mbold_loss(model, torch.tensor([0.9, 0.1]), ids(3), made, MboldSettings(), None)
    assert loss.item() == pytest.approx((0.4**2 + 0.4**2) / 2)
    assert parts["predicted"].tolist() == [0.5, 0.5]
    conservative = MboldSettings(conservative=2.0)
    loss, parts = mbold_loss(model, torch.tensor([0.9, 0.1]), ids(3), made, conservative, None)
    assert parts["conservative"].item() == pytest.approx(math.log(2))  # logsumexp of (0.5, 0.5) minus 0.5
    assert loss.item() == pytest.approx(0.16 + 2 * math.log(2))


def test_triangle_regulariser_by_hand() -> None:
    d = torch.tensor
    assert triangle_regulariser(d([0.9]), d([0.9]), d([0.5])).item() == pytest.approx(0.0961)
    assert triangle_regulariser(d([0.9]), d([0.9]), d([0.9])).item() == 0


def logit(probability: float) -> float:
    return math.log(probability / (1 - probability))


@pytest.mark.parametrize(("goal_kind", "expected"), [("state-action", 0.0961), ("state", (0.9 * 0.9 * 0.9 - 0.5) ** 2)])
def test_triangle_term_of_the_loss_by_hand(goal_kind: str, expected: float) -> None:
    model = Table(SPEC, 3, goal_kind)
    column = 0 if goal_kind == "state" else 1
    with torch.no_grad():
        model.logits[0, 1, 1, 0] = logit(0.9)  # x = (0, 1) to y = (1, 0)
        model.logits[1, 0, 2, column] = logit(0.9)  # y to z = (2, 1)
        model.logits[0, 1, 2, column] = logit(0.5)
    triplets = Triplets(torch.tensor([[0], [1], [2]]), torch.tensor([[1], [0], [1]]))
    made = batch([0, 1], [1, 0], [1, 2], [0, 0], [0, 1])
    settings = MboldSettings(triangle=3.0)
    y = torch.tensor([0.5, 0.5])
    loss, parts = mbold_loss(model, y, ids(3), made, settings, triplets)
    assert parts["triangle"].item() == pytest.approx(expected, abs=1e-6)
    assert loss.item() == pytest.approx(parts["td"].item() + 3 * expected, abs=1e-6)


def test_no_triangle_violation_of_a_quasimetric() -> None:
    dataset = corridor()
    model = make_q_model("iqe-maxmean", QModelSpec(18, 4, 0.95), hidden_sizes=(8,), latent_size=16)
    sampler = GoalSampler(dataset, GoalSettings(), 0)
    states, actions = sampler.sample_pairs(300)
    triplets = Triplets(states.view(3, -1), actions.view(3, -1))
    made = sampler.sample(8)
    settings = MboldSettings(triangle=1.0)
    _, parts = mbold_loss(model, torch.zeros(8), torch.tensor(dataset.observations), made, settings, triplets)
    assert parts["triangle"].item() < 1e-12


def learner(name: str = "iqe-maxmean", **changes: object) -> tuple[MboldLearner, GoalSampler]:
    dataset = corridor()
    torch.manual_seed(0)
    params = {"hidden_sizes": (16, 16)} | ({} if "unconstrained" in name else {"latent_size": 16})
    model = make_q_model(name, QModelSpec(18, 4, 0.95), **params).double()
    settings = MboldSettings.from_values({"batch_size": 64, **changes}, "test")
    made = MboldLearner(model, torch.tensor(dataset.observations).double(), settings, 10)
    return made, GoalSampler(dataset, settings.goals, 0)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("iqe-maxmean", {}),
        ("deep-norm-fixed", {}),
        ("dot-disc", {"conservative": 0.5, "triangle": 1.0, "triangle_triplets": 20}),
        ("unconstrained-state-disc-sigmoid", {"triangle": 0.3, "triangle_triplets": 20}),
    ],
)
def test_a_step_equals_the_naive_step(name: str, changes: dict[str, float]) -> None:
    """Against encoding every row of the batch, a plain Adam and a Polyak loop: all that a step changes."""
    fast, sampler = learner(name, **changes)
    slow, slow_sampler = learner(name, **changes)
    model, target = slow.model, slow.target
    optimizer = torch.optim.Adam(model.parameters(), lr=fast.settings.lr)
    observations, settings = slow.observations, slow.settings
    for step in range(3):
        fast.update(sampler, with_metrics=False)
        made = slow_sampler.sample(settings.batch_size)
        queries = [(made.states, made.actions, made.goals, made.goal_actions)]
        if settings.triangle:
            states, actions = slow_sampler.sample_pairs(3 * settings.triangle_triplets)
            x, y, z = zip(states.view(3, -1), actions.view(3, -1), strict=True)
            queries += [(*x, *y), (*y, *z), (*x, *z)]
        s, a, g, b = (torch.cat(parts) for parts in zip(*queries, strict=True))
        with torch.no_grad():
            ahead, goal = (target.encode(observations[ids]) for ids in (made.next_states, made.goals))
            ahead = target.discounted(ahead, None, goal, made.goal_actions)
            value = 0.95 * ahead.amax(-1)
            if target.goal_kind == "state":
                value[made.next_states == made.goals] = 1
            else:
                value[made.next_states == made.goals] = 0.95
                value[(made.states == made.goals) & (made.actions == made.goal_actions)] = 1
        z_all = model.encode(observations[torch.cat([s, g])])
        every = model.discounted(z_all[: len(s)], None, z_all[len(s) :], b)
        chosen = every.gather(-1, a[:, None]).squeeze(-1)
        size = settings.batch_size
        loss = (chosen[:size] - value.clamp(0, 1)).square().mean()
        loss = loss + settings.conservative * (every[:size].logsumexp(-1) - chosen[:size]).mean()
        if settings.triangle:
            xy, yz, xz = chosen[size:].view(3, -1)
            if target.goal_kind == "state":
                yz = 0.95 * every[size:].view(3, -1, 4)[1].amax(-1)
            loss = loss + settings.triangle * (xy * yz - xz).clamp(min=0).square().mean()
        optimizer.param_groups[0]["lr"] = settings.lr * 0.5 * (1 + math.cos(math.pi * step / 10))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.project_()
        with torch.no_grad():
            for own, other in zip(target.parameters(), model.parameters(), strict=True):
                own.copy_(settings.polyak * own + (1 - settings.polyak) * other)
            for buffer, other_buffer in zip(target.buffers(), model.buffers(), strict=True):
                buffer.copy_(other_buffer)
    # Adam divides by the size of a gradient, so that rounding of tiny ones shows; a wrong step would differ by 3e-4.
    for part in ("model", "target"):
        expected = getattr(slow, part).state_dict()
        torch.testing.assert_close(getattr(fast, part).state_dict(), expected, rtol=0, atol=1e-6)


def test_weights_stay_within_their_constraints() -> None:
    made, sampler = learner("wide-norm", lr=0.1)
    for _ in range(5):
        made.update(sampler, with_metrics=False)
    for module in (made.model, made.target):
        assert (module.head.weights.weight >= 0).all()  # type: ignore[operator, union-attr]


def test_learning_rate_falls_to_zero() -> None:
    settings = MboldSettings(lr=1.0)
    assert settings.learning_rate(0, 10) == 1
    assert settings.learning_rate(5, 10) == pytest.approx(0.5)
    assert settings.learning_rate(10, 10) == pytest.approx(0)


def test_number_of_steps() -> None:
    settings = MboldSettings(batch_size=100, epochs=3, min_steps=5)
    assert settings.num_steps(1001) == 33
    assert settings.num_steps(10) == 5


def test_a_nan_loss_stops_before_the_weights_are_touched() -> None:
    made, sampler = learner()
    made.observations = made.observations * float("nan")
    before = copy.deepcopy(made.model.state_dict())
    with pytest.raises(TrainingError, match="the loss is nan at step 1"):
        made.update(sampler, with_metrics=False)
    for name, parameter in made.model.named_parameters():
        assert torch.equal(parameter, before[name])


@pytest.mark.parametrize("goal_kind", ["state-action", "state"])
def test_tabular_learning_converges_to_the_exact_distances(goal_kind: str) -> None:
    layout = load_layout("corridor")
    truth = ground_truth(layout)
    states, actions = truth.transitions.shape
    # Every transition of the world, as an episode of its own.
    ends = np.stack([np.repeat(np.arange(states), actions), truth.transitions.ravel()], 1)
    dataset = Dataset.from_arrays(
        layout.observations[ends.ravel()],
        np.tile(np.arange(actions), states),
        np.ones(len(ends), int),
        num_actions=actions,
        layout=layout,
    )
    model = Table(QModelSpec(1, actions, 0.8), states, goal_kind).double()
    goals = GoalSettings(current=0.1, future=0.1, random=0.8)
    settings = MboldSettings(batch_size=512, lr=0.2, polyak=0.3, discount=0.8, goals=goals)
    made, sampler = MboldLearner(model, ids(states).double(), settings, 2000), GoalSampler(dataset, goals, 0)
    for _ in range(2000):
        made.update(sampler, with_metrics=False)
    learned = all_steps_to_goal(model, ids(states).double())
    exact = truth.distances[truth.transitions].transpose(0, 2, 1)
    other = ~np.eye(states, dtype=bool)
    assert abs(learned - exact)[other].max() < 0.05
    assert score(model, ids(states).double(), truth, 0)["success_rate"] == 1
