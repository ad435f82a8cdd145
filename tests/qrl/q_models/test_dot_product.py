import torch

from qrl.q_models import DotProductQModel
from tests.q_models import small_model


def test_outputs_are_dot_products_of_two_encoders() -> None:
    model = small_model("dot-dist", latent_size=6)
    assert isinstance(model, DotProductQModel)
    observations = torch.randn(5, 3)
    z = model.encode(observations)
    assert z.shape == (5, 2, 4, 6)
    source = model.source_encoder(observations).view(5, 4, 6)
    target = model.goal_encoder(observations).view(5, 4, 6)
    expected = torch.einsum("san,gbn->sgab", source, target)
    torch.testing.assert_close(model.distance(z[:, None], None, z[None], None), expected)
    assert not torch.equal(source, target)
