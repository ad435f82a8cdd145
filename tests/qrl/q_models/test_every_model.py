"""The contract of every registered Q-model."""

import pytest

from qrl.readouts import READOUTS
from qrl.registry import find, list_q_models
from qrl.testing import check_q_model


@pytest.mark.parametrize("name", list_q_models())
def test_contract(name: str) -> None:
    # A narrow latent, because the contract does not depend on its size and pqe-gg is slow in float64.
    check_q_model(name, **({"latent_size": 32} if find(name).is_head else {}))


@pytest.mark.parametrize("name", ["iqe-maxmean", "dot-disc", "unconstrained-dist", "unconstrained-state-disc-sigmoid"])
def test_contract_without_batch_norm(name: str) -> None:
    check_q_model(name, batch_norm=False)


def test_all_models_of_the_paper_are_registered() -> None:
    models = ["dot", "unconstrained", "unconstrained-state"]
    aliases = {f"{model}-{readout}" for model in models for readout in READOUTS}
    assert {*models, *aliases} <= {name for name in list_q_models() if not find(name).is_head}
