import pytest
import torch
from qrl_hindsight_quantile import pinball_loss

from qrl.testing import check_learner


def test_contract() -> None:
    check_learner("hindsight-quantile")


def test_by_hand() -> None:
    above, below = torch.tensor([2.0]), torch.tensor([-1.0])
    assert pinball_loss(above, 0.25).item() == pytest.approx(0.5)  # 0.25 * 2
    assert pinball_loss(below, 0.25).item() == pytest.approx(0.75)  # (0.25 - 1) * -1
    assert pinball_loss(torch.cat([above, below]), 0.25).item() == pytest.approx(0.625)


@pytest.mark.parametrize(("quantile", "optimum"), [(0.1, 3), (0.3, 5), (0.5, 7), (0.9, 11)])
def test_the_optimum_is_the_quantile(quantile: float, optimum: float) -> None:
    steps, distances = torch.tensor([3.0, 5, 7, 9, 11]), torch.arange(3.0, 12)
    losses = torch.stack([pinball_loss(steps - distance, quantile) for distance in distances])
    assert distances[losses.argmin()] == optimum
