"""The example of a user's own model."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from qrl.heads import IQE, Euclidean

ROOT = Path(__file__).parents[1]


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_model", ROOT / "examples" / "own_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.safetensors"
    monkeypatch.setattr(sys, "argv", ["own_model.py", "--steps", "2", "--save", str(file)])
    example().main()
    assert file.exists()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].split(",")[0] for line in lines] == ["IQE", "Euclidean", "IQE"]


def test_only_a_quasimetric_learns_the_directed_graph() -> None:
    """The example at 300 steps; the mean over both directions of the exact distances is the best symmetric fit."""
    module = example()
    exact = module.graph_distances()
    assert (exact[0, 19].item(), exact[19, 0].item()) == (11, 1)  # by hand: through the chord from 5 to 14
    symmetric = (exact - (exact + exact.T) / 2).abs().mean().item()
    _, error = module.train(IQE(32), steps=300)
    _, metric_error = module.train(Euclidean(32), steps=300)
    assert error < symmetric / 2
    assert metric_error > symmetric / 2
