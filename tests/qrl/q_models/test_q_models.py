import pytest
import torch

from qrl import QModelSpec, make_q_model
from qrl.common.errors import ConfigError
from qrl.heads.norms import NonNegativeLinear
from qrl.q_models import DotProductQModel, LatentQModel, QModel, UnconstrainedQModel
from qrl.q_models.base import pick
from qrl.readouts import READOUTS
from qrl.registry import find, list_q_models
from qrl.testing import check_q_model

SPEC = QModelSpec(observation_dim=3, num_actions=4, discount=0.95)


@pytest.mark.parametrize("name", list_q_models())
def test_contract(name: str) -> None:
    check_q_model(name)


@pytest.mark.parametrize("name", ["iqe-maxmean", "dot-disc", "unconstrained-dist", "unconstrained-state-disc-sigmoid"])
def test_contract_without_batch_norm(name: str) -> None:
    check_q_model(name, batch_norm=False)


def test_all_names_of_the_paper() -> None:
    models = ["dot", "unconstrained", "unconstrained-state"]
    aliases = {f"{model}-{readout}" for model in models for readout in READOUTS}
    assert {*models, *aliases} == {name for name in list_q_models() if not find(name).is_head}
    assert len(list_q_models()) == 31


def small(name: str, **params: object) -> QModel:
    torch.manual_seed(0)
    return make_q_model(name, SPEC, hidden_sizes=(8,), **params).eval()


def test_latent_model_is_the_head_on_the_latents_of_the_actions() -> None:
    model = small("iqe-sum", latent_size=16)
    assert isinstance(model, LatentQModel)
    z = model.encode(torch.randn(5, 3))
    assert z.shape == (5, 4, 16)
    distances = model.distance(z[:, None], None, z[None], None)
    for s, a, g, b in [(0, 1, 2, 3), (4, 0, 4, 0), (3, 2, 1, 2)]:
        torch.testing.assert_close(distances[s, g, a, b], model.head(z[s, a], z[g, b]))


def test_dot_product_has_two_different_encoders() -> None:
    model = small("dot-dist", latent_size=6)
    assert isinstance(model, DotProductQModel)
    observations = torch.randn(5, 3)
    z = model.encode(observations)
    assert z.shape == (5, 2, 4, 6)
    source = model.source_encoder(observations).view(5, 4, 6)
    target = model.goal_encoder(observations).view(5, 4, 6)
    expected = torch.einsum("san,gbn->sgab", source, target)
    torch.testing.assert_close(model.distance(z[:, None], None, z[None], None), expected)
    assert not torch.equal(source, target)


def test_unconstrained_model_reads_state_and_goal_side_by_side() -> None:
    model = small("unconstrained-dist")
    assert isinstance(model, UnconstrainedQModel)
    s, g = torch.randn(2, 3), torch.randn(2, 3)
    expected = model.network(torch.cat([s, g], -1)).view(2, 4, 4)
    torch.testing.assert_close(model.distance(s, None, g, None), expected)
    torch.testing.assert_close(model.distance(s[0], None, g[0], None), expected[0])
    by_state = small("unconstrained-state-dist")
    assert by_state.goal_kind == "state"
    assert by_state.distance(s, None, g, None).shape == (2, 4, 1)


def test_steps_to_goal_by_hand() -> None:
    """The mean over the goal's actions of the distance, minus one; for state goals the distance itself."""

    class Given(QModel):
        def distance(self, *_: object) -> torch.Tensor:
            return torch.arange(16.0).view(4, 4)

    model = Given(SPEC)
    anything = torch.zeros(1)
    assert model.steps_to_goal(anything, anything).tolist() == [0.5, 4.5, 8.5, 12.5]
    model.goal_kind = "state"
    model.distance = lambda *_: torch.arange(4.0).view(4, 1)  # type: ignore[method-assign]
    assert model.steps_to_goal(anything, anything).tolist() == [0, 1, 2, 3]


def test_project_reaches_every_constrained_weight() -> None:
    for name in ("deep-norm", "deep-norm-fixed", "wide-norm"):
        model = small(name, latent_size=8)
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


def test_bad_specs() -> None:
    for arguments, message in [
        ((0, 4, 0.9), "observation_dim"),
        ((3, 0, 0.9), "num_actions"),
        ((3, 4, 1.0), "discount"),
    ]:
        with pytest.raises(ConfigError, match=message):
            QModelSpec(*arguments)
