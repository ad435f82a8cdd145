import pytest
import torch

from qrl.agents.scaling import Scaling


def test_scaling() -> None:
    rows = torch.tensor([[1.0, 5.0, 0.1], [3.0, 5.0, 0.1], [5.0, 5.0, 0.1]])
    scaled = Scaling.fit(rows, standardize=True)(rows)
    assert scaled[:, 0].tolist() == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])
    assert (scaled[:, 1:] == 0).all()  # constant features carry no information
    assert torch.equal(Scaling.fit(rows, standardize=False)(rows), rows)


def test_a_checkpoint_holds_the_scaling() -> None:
    scaling = Scaling.fit(torch.randn(5, 3), standardize=True)
    restored = Scaling.from_tensors({"model.weight": torch.zeros(1), **scaling.tensors()})
    assert torch.equal(restored.mean, scaling.mean)
    assert torch.equal(restored.scale, scaling.scale)
