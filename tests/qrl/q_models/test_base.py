import torch

from qrl.heads.norms import NonNegativeLinear
from qrl.q_models import QModel
from qrl.q_models.base import pair_up, pick, take
from tests.q_models import SPEC, small_model


def test_steps_to_goal_by_hand() -> None:
    """The mean over the goal's actions of the distance, minus one; for state goals the distance itself."""

    class Constant(QModel):
        def distance(self, *_: object) -> torch.Tensor:
            return torch.arange(16.0).view(4, 4)

    model = Constant(SPEC)
    unused = torch.zeros(1)
    assert model.steps_to_goal(unused, unused).tolist() == [0.5, 4.5, 8.5, 12.5]
    model.goal_kind = "state"
    model.distance = lambda *_: torch.arange(4.0).view(4, 1)  # type: ignore[method-assign]
    assert model.steps_to_goal(unused, unused).tolist() == [0, 1, 2, 3]


def test_project_covers_every_constrained_weight() -> None:
    for name in ("deep-norm", "deep-norm-fixed", "wide-norm"):
        model = small_model(name, latent_size=8)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(1)
        model.project_()
        constrained = [layer for layer in model.modules() if isinstance(layer, NonNegativeLinear)]
        assert constrained
        assert all((layer.weight >= 0).all() for layer in constrained)


def test_pick_broadcasts() -> None:
    table = torch.arange(24.0).view(2, 3, 4)
    assert pick(table, torch.tensor([1, 2]), -2).tolist() == [[4, 5, 6, 7], [20, 21, 22, 23]]
    assert pick(table, torch.tensor(1), -2).tolist() == [[4, 5, 6, 7], [16, 17, 18, 19]]
    assert pick(table[0], torch.tensor([0, 2, 2]), -2).tolist() == [[0, 1, 2, 3], [8, 9, 10, 11], [8, 9, 10, 11]]
    assert pick(table, torch.tensor([[0, 1, 2]]), -1).tolist() == [[0, 5, 10], [12, 17, 22]]


def test_take_by_hand() -> None:
    rows = torch.arange(12.0).view(3, 2, 2)  # three states, two actions
    states = torch.tensor([2, 0])
    assert take(rows, states, None).tolist() == [[[8, 9], [10, 11]], [[0, 1], [2, 3]]]
    assert take(rows, states, torch.tensor([1, 0])).tolist() == [[10, 11], [0, 1]]


def test_pair_up_adds_an_axis_per_omitted_action() -> None:
    state, goal = torch.randn(5, 4, 2), torch.randn(5, 4, 2)
    action = torch.zeros(5, dtype=torch.long)
    for a, b, shape in [
        (None, None, (5, 4, 4, 2)),
        (action, None, (5, 4, 2)),
        (None, action, (5, 4, 2)),
        (action, action, (5, 2)),
    ]:
        u, v = pair_up(state, a, goal, b)
        assert torch.broadcast_shapes(u.shape, v.shape) == shape
    u, v = torch.broadcast_tensors(*pair_up(state, None, goal, None))
    assert torch.equal(u[:, 1, 3], state[:, 1])
    assert torch.equal(v[:, 1, 3], goal[:, 3])
