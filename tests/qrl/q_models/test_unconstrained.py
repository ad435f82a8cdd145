import torch

from qrl.q_models import UnconstrainedQModel
from tests.q_models import small_model


def test_outputs_are_those_of_a_network_on_state_and_goal() -> None:
    model = small_model("unconstrained-dist")
    assert isinstance(model, UnconstrainedQModel)
    s, g = torch.randn(2, 3), torch.randn(2, 3)
    expected = model.network(torch.cat([s, g], -1)).view(2, 4, 4)
    torch.testing.assert_close(model.distance(s, None, g, None), expected)
    torch.testing.assert_close(model.distance(s[0], None, g[0], None), expected[0])
    by_state = small_model("unconstrained-state-dist")
    assert by_state.goal_kind == "state"
    assert by_state.distance(s, None, g, None).shape == (2, 4, 1)
