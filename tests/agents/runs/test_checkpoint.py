"""The file format. What a damaged checkpoint does to a run is in test_bad_runs."""

import json
import struct
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
    assert (content["format"], content["format_version"]) == ("qrl-checkpoint", 2)


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


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    """No flipped bit is loaded as if nothing had happened: neither in a weight nor in the metadata."""
    path = tmp_path / "c"
    save_checkpoint(path, CHECKPOINT, {"model.weight": torch.randn(3, 4), "steps": torch.tensor(7)})
    content = bytearray(path.read_bytes())
    for position in range(len(content)):
        for bit in (1, 16):
            content[position] ^= bit
            path.write_bytes(content)
            with pytest.raises(CheckpointError, match="c "):
                load_checkpoint(path)
            content[position] ^= bit
    path.write_bytes(content)
    assert load_checkpoint(path)[0] == CHECKPOINT


def test_changed_metadata_are_noticed_without_the_tensors(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", CHECKPOINT, {"x": torch.ones(2)})
    content = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(content.replace(b'\\"step\\": 7', b'\\"step\\": 8'))
    with pytest.raises(CheckpointError, match="c has changed since it was written; restore it"):
        load_checkpoint(tmp_path / "c", with_tensors=False)


@pytest.mark.parametrize("name", ["model.norm.running_var", "observations.scale", "optimizer.exp_avg.x"])
def test_values_that_are_not_finite(name: str, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", CHECKPOINT, {"x": torch.ones(2), name: torch.tensor([1.0, float("inf")])})
    with pytest.raises(CheckpointError, match=f"c: {name} has values that are not finite"):
        load_checkpoint(tmp_path / "c")


def test_errors_do_not_repeat_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    header = json.dumps({"weight": "x" * 3000}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(CheckpointError, match="cannot be read as a checkpoint") as raised:
        load_checkpoint(path)
    assert len(str(raised.value)) < 400 + len(str(path))
