import torch

from qrl.q_models import LatentQModel
from tests.q_models import small_model


def test_distance_is_the_head_of_the_latents_of_the_actions() -> None:
    model = small_model("iqe-sum", latent_size=16)
    assert isinstance(model, LatentQModel)
    z = model.encode(torch.randn(5, 3))
    assert z.shape == (5, 4, 16)
    distances = model.distance(z[:, None], None, z[None], None)
    for s, a, g, b in [(0, 1, 2, 3), (4, 0, 4, 0), (3, 2, 1, 2)]:
        torch.testing.assert_close(distances[s, g, a, b], model.head(z[s, a], z[g, b]))
