import pytest
import torch
from qrl_directed_l1 import DirectedL1

from qrl.testing import check_q_model


@pytest.mark.parametrize("reduction", ["mean", "maxmean"])
def test_contract(reduction: str) -> None:
    check_q_model("directed-l1", reduction=reduction)


def test_by_hand() -> None:
    head = DirectedL1(1, reduction="sum")
    low, high = torch.tensor([0.0]), torch.tensor([2.0])
    assert head(low, high).item() == pytest.approx(2 * 0.6931472)  # softplus(0)
    assert head(high, low).item() == pytest.approx(2 * 0.1269280)  # softplus(-2)
