"""From checkpoints to agents: what is loaded, and what a damaged or foreign file is refused for."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import qrl
from qrl.agents.errors import CheckpointError, RunError
from qrl.agents.runs.checkpoint import load_checkpoint
from qrl.agents.runs.loading import load_agent
from qrl.agents.runs.run import Run
from qrl.common.errors import RegistryError
from qrl.registry import find, list_q_models
from tests.agents.runs.running import rewrite
from tests.agents.worlds import small_settings


def test_the_agent_has_the_weights_and_the_scaling(trained: Path) -> None:
    checkpoint = trained / "checkpoint.safetensors"
    agent, metadata = load_agent(checkpoint, find, seed=7)
    _, tensors = load_checkpoint(checkpoint)
    assert (agent.seed, metadata.step, agent.model.training) == (7, 300, False)
    for name, value in agent.model.state_dict().items():
        assert torch.equal(value, tensors[f"model.{name}"])
    assert torch.equal(agent.scaling.mean, tensors["observations.mean"])


def test_a_folder_that_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a training run"):
        qrl.load(tmp_path)


def _drop_weights(content: dict[str, Any], tensors: dict[str, Any]) -> None:
    tensors.pop(next(key for key in tensors if key.startswith("model.")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content, _: content["model_params"].update(hidden_sizes=[60_000, 60_000]),
            "should be torch.float32 of shape",
        ),
        (lambda content, _: content["model_params"].update(hidden_sizes=[10**7]), "less than or equal to 65536"),
        (lambda content, _: content.update(observation_dim=10**7), "should be torch.float32 of shape"),
        (lambda content, _: content.update(observation_dim=10**9), "observation_dim.*less than or equal to"),
        (lambda content, _: content.update(step=-1), "step.*greater than or equal to 0"),
        (lambda content, _: content["model_params"].update(latent_size=2**70), "latent_size"),
        (lambda content, _: content.update(model_params={}), "does not fit the model"),
        (_drop_weights, "missing"),
        (lambda _, tensors: tensors.update({"model.encoder.x": torch.zeros(2, dtype=torch.int8)}), "Unexpected key"),
        (lambda _, tensors: tensors.pop("observations.mean"), "observations.mean"),
        (lambda _, tensors: tensors.update({"observations.mean": torch.zeros(3)}), "does not fit"),
        (lambda _, tensors: tensors.update({"model.more": torch.zeros(3)}), 'Unexpected key.*"more"'),
    ],
)
def test_sizes_in_a_checkpoint_are_not_trusted(trained: Path, tmp_path: Path, change: Any, message: str) -> None:
    path = Path(shutil.copy(trained / "checkpoint.safetensors", tmp_path))
    rewrite(path, change)
    with pytest.raises(CheckpointError, match=message):
        Run.open(trained).load_agent(path)


def test_an_unknown_model_names_where_it_came_from(trained: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(trained / "checkpoint.safetensors", tmp_path))
    rewrite(path, lambda content, _: content.update(model_name="iqe-maxmeen"))
    with pytest.raises(RegistryError, match=r"did you mean 'iqe-maxmean'.*came from qrl"):
        Run.open(trained).load_agent(path)


@pytest.mark.parametrize("name", list_q_models())
def test_every_model_can_be_loaded(name: str, tmp_path: Path) -> None:
    run = Run.start(small_settings(tmp_path / "run", model={"name": name, "params": {"hidden_sizes": [8]}}))
    agent = qrl.load(run.path)
    observations, learner = run.dataset.observations, run.trainer.learner
    with torch.no_grad():
        model = learner.model.eval()
        rows = model.encode(learner.observations)
        expected = model.steps_to_goal(rows[0], rows[1]).numpy()
    np.testing.assert_allclose(agent.steps_to_goal(observations[0], observations[1]), expected, rtol=1e-4, atol=1e-5)
