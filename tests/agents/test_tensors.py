import torch

from qrl.agents.tensors import with_prefix


def test_the_tensors_of_one_part() -> None:
    tensors = {
        key: torch.tensor(index) for index, key in enumerate(["model.a.b", "model.model.c", "models.d", "target.a"])
    }
    part = with_prefix(tensors, "model")
    assert {key: int(value) for key, value in part.items()} == {"a.b": 0, "model.c": 1}
