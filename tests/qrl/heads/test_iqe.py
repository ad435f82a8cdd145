import pytest
import torch

from qrl import QModelSpec, make_q_model
from qrl.common.errors import ConfigError
from qrl.errors import ShapeError
from qrl.heads import IQE
from qrl.heads.interval_union import compiled_interval_union


def test_two_components_by_hand() -> None:
    u, v = torch.tensor([0.0, 0, 0, 3]), torch.tensor([1.0, 2, 1, 5])
    assert IQE(4, 2, reduction="sum").components(u, v).tolist() == [2, 3]
    for reduction, expected in [("sum", 5), ("mean", 2.5), ("max", 3), ("maxmean", 2.6344707)]:
        assert IQE(4, dim_per_component=2, reduction=reduction)(u, v).item() == pytest.approx(expected, abs=1e-6)


def test_acceleration_reaches_the_head_of_a_model() -> None:
    model = make_q_model("iqe-sum", QModelSpec(3, 2, 0.9), hidden_sizes=(), latent_size=8)
    model.accelerate_()
    assert model.head.union is compiled_interval_union  # type: ignore[union-attr]
    make_q_model("mrn", QModelSpec(3, 2, 0.9), hidden_sizes=()).accelerate_()  # a no-op


def test_bad_sizes_and_names() -> None:
    for input_size, size in [(10, 4), (8, 0), (0, 8)]:
        with pytest.raises(ShapeError, match=f"input_size {input_size} cannot be split"):
            IQE(input_size, size)
    with pytest.raises(ConfigError, match=r"unknown reduction 'maxmen' \(did you mean 'maxmean'\?\)"):
        IQE(8, reduction="maxmen")
