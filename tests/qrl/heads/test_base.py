import pytest
import torch
from torch import Tensor

from qrl.errors import ShapeError
from qrl.heads import Head
from qrl.heads.reductions import make_reduction


class Absolute(Head):
    guaranteed_quasimetric = True

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return (u - v).abs()


def test_forward_transforms_and_reduces_the_components() -> None:
    head = Absolute(2)
    u, v = torch.tensor([4.0, 1.0]), torch.tensor([0.0, 2.0])
    assert head(u, v).tolist() == [4, 1]
    head.reduction = make_reduction("sum")
    assert head(u, v).item() == 5
    head.transform = torch.nn.Threshold(2, 0)
    assert head(u, v).item() == 4


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((2,), (3,), r"Absolute: v has the shape \(3,\), but its last dimension must be input_size = 2"),
        ((), (2,), r"Absolute: u has the shape \(\)"),
        ((3, 2), (4, 2), r"Absolute: u \(3, 2\) and v \(4, 2\) do not broadcast"),
    ],
)
def test_shapes_that_do_not_match(left: tuple[int, ...], right: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        Absolute(2)(torch.zeros(left), torch.zeros(right))
