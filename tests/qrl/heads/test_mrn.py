import pytest
import torch
from torch import nn

from qrl.catalog import count_parameters
from qrl.heads import MRN


@pytest.mark.parametrize(
    ("normalize", "fixed", "expected"),
    [(True, False, 15.5), (True, True, 6.5355339), (False, False, 28), (False, True, 8)],
)
def test_mrn_by_hand(normalize: bool, fixed: bool, expected: float) -> None:
    head = MRN(2, 2, fixed=fixed, normalize=normalize)
    head.symmetric = head.asymmetric = nn.Identity()
    assert head(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0])).item() == pytest.approx(expected)


def test_original_mrn_violates_the_triangle_inequality_by_hand() -> None:
    head = MRN(1, 1)
    head.symmetric = nn.Identity()
    for parameter in head.asymmetric.parameters():
        nn.init.zeros_(parameter)
    zero, one, two = torch.tensor([[0.0], [1.0], [2.0]])
    assert (head(zero, two).item(), head(zero, one).item() + head(one, two).item()) == (4, 2)


@pytest.mark.parametrize(
    ("input_size", "hidden_size", "expected"),
    [(48, 58, 12528), (256, 128, 98816), (256, 512, 788480), (512, 128, 164352), (512, 512, 1050624)],
)
def test_mrn_parameters(input_size: int, hidden_size: int, expected: int) -> None:
    assert count_parameters(MRN(input_size, hidden_size)) == expected


def test_the_outputs_may_have_another_size() -> None:
    head = MRN(2, 5, output_size=4, fixed=True)
    assert head.symmetric(torch.zeros(2)).shape == (4,)
    head.symmetric = head.asymmetric = nn.Identity()
    head.output_size = 2
    assert head(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0])).item() == pytest.approx(6.5355339)
