import pytest
import torch
from torch import Tensor, nn

from qrl import register_head
from qrl.catalog import count_parameters, describe_model, table_of_models
from qrl.heads import Head

pytestmark = pytest.mark.usefixtures("restored_registry")


class Shifted(Head):
    """Reads the values of its initial weights, which the meta device does not have."""

    guaranteed_quasimetric = False

    def __init__(self, input_size: int) -> None:
        super().__init__(input_size)
        self.weight = nn.Parameter(torch.rand(3))
        self.shift = self.weight.max().item()

    def components(self, u: Tensor, v: Tensor) -> Tensor:
        return (u - v).abs().sum(-1) + self.shift


def row(name: str) -> str:
    (line,) = (line for line in table_of_models().splitlines() if line.split(" ")[0] == name)
    return line


def test_count_parameters() -> None:
    assert count_parameters(nn.Linear(3, 4)) == 16


def test_models_that_need_real_weights_are_listed() -> None:
    register_head("shifted", latent_size=2, hidden_sizes=())(Shifted)
    assert row("shifted").split() == ["shifted", "Shifted", "no", "state-action", "3", "155", __name__]


def test_a_broken_model_does_not_hide_the_others() -> None:
    class Broken(Shifted):
        def __init__(self, input_size: int) -> None:
            raise OSError("no license")

    register_head("broken")(Broken)
    assert "broken: model broken: Broken cannot be built: OSError: no license" in row("broken")
    assert "guaranteed" in row("iqe-maxmean")


def test_models_are_described_by_their_docstring_and_parameters() -> None:
    register_head("shifted", latent_size=2)(Shifted)
    text = describe_model("shifted")
    assert text.startswith(f"shifted (Shifted, from {__name__})\nReads the values")
    assert "latent_size   size of the latent of one state-action pair (default: 2)" in text
