"""The file format. What a damaged checkpoint does to a run is in test_bad_runs."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from qrl.agents.errors import CheckpointError
from qrl.agents.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint

CHECKPOINT = Checkpoint(
    step=7,
    model_name="iqe-maxmean",
    model_params={"hidden_sizes": [4, 4]},
    observation_dim=2,
    num_actions=3,
    discount=0.9,
    dataset_hash="abc",
    settings={"seed": 0},
    sampler={"bit_generator": "PCG64", "state": {"state": 2**127}},
)


def test_a_checkpoint_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    weight = torch.randn(3, 4)
    save_checkpoint(path, CHECKPOINT, {"model.weight": weight, "model.tied": weight, "model.turned": weight.T})
    checkpoint, tensors = load_checkpoint(path)
    assert checkpoint == CHECKPOINT
    assert torch.equal(tensors["model.weight"], weight)
    assert torch.equal(tensors["model.tied"], weight)
    assert torch.equal(tensors["model.turned"], weight.T)
    assert load_checkpoint(path, with_tensors=False) == (CHECKPOINT, {})


def test_the_same_content_has_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_checkpoint(tmp_path / name, CHECKPOINT, {"x": torch.ones(2)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_format_is_recorded(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", CHECKPOINT, {"x": torch.ones(2)})
    with safe_open(tmp_path / "c", framework="pt") as file:
        content = json.loads(file.metadata()["qrl"])
    assert (content["format"], content["format_version"]) == ("qrl-checkpoint", 1)


@pytest.mark.parametrize("metadata", ["[]", "{", '{"format": "other"}', "[" * 100_000])
def test_metadata_of_others(metadata: str, tmp_path: Path) -> None:
    save_file({"x": torch.zeros(2)}, tmp_path / "c", {"qrl": metadata})
    with pytest.raises(CheckpointError, match="is a safetensors file, but not a checkpoint of qrl"):
        load_checkpoint(tmp_path / "c")


def test_missing_and_unknown_keys_are_named(tmp_path: Path) -> None:
    content = {"format": "qrl-checkpoint", "format_version": 1, **CHECKPOINT.model_dump()}
    for changed, key in (({**content, "more": 1}, "more"), ({**content, "step": "x"}, "step")):
        save_file({"x": torch.zeros(2)}, tmp_path / "c", {"qrl": json.dumps(changed)})
        with pytest.raises(CheckpointError, match=f"c: .*{key}"):
            load_checkpoint(tmp_path / "c")
