"""From a checkpoint to an agent."""

from collections.abc import Callable
from pathlib import Path

import torch

from qrl.agents.errors import CheckpointError
from qrl.agents.planning.agent import Agent
from qrl.agents.runs.checkpoint import Checkpoint, load_checkpoint
from qrl.agents.runs.model import MISFITS, check_shapes
from qrl.agents.scaling import Scaling
from qrl.agents.tensors import with_prefix
from qrl.registry import Registration
from qrl.spec import QModelSpec


def load_agent(path: Path, find_model: Callable[[str], Registration], seed: int = 0) -> tuple[Agent, Checkpoint]:
    """The agent of a checkpoint, and the checkpoint's metadata. Runs no code from the file."""
    checkpoint, tensors = load_checkpoint(path)
    registration = find_model(checkpoint.model_name)
    spec = QModelSpec(checkpoint.observation_dim, checkpoint.num_actions, checkpoint.discount)
    weights = with_prefix(tensors, "model")
    try:
        check_shapes(registration, spec, checkpoint.model_params, weights)
        model = registration.make(spec, checkpoint.model_params)
        model.load_state_dict(weights)
        scaling = Scaling.from_tensors(tensors)
        if scaling(torch.zeros(1, scaling.observation_dim)).shape[1] != spec.observation_dim:
            raise RuntimeError(f"its scaled observations have not {spec.observation_dim} features")
    except MISFITS as error:
        raise CheckpointError(f"{path} does not fit the model {checkpoint.model_name}: {error}") from error
    return Agent(model, scaling, seed, checkpoint.learns), checkpoint
