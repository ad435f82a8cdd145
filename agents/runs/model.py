"""The model of a run at initialization, and fully resolved settings."""

import json
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from qrl.agents.runs.settings import RunSettings
from qrl.checks import quick_check
from qrl.common.errors import ConfigError
from qrl.common.seeds import derived_seed
from qrl.common.text import clip, shown
from qrl.compiling import has_compiler
from qrl.q_models.base import QModel
from qrl.registry import Registration, find
from qrl.spec import QModelSpec

SettingsT = TypeVar("SettingsT", bound=RunSettings)


def build_model(settings: RunSettings, spec: QModelSpec) -> tuple[QModel, dict[str, Any]]:
    """The model with its initial weights, and all its parameters. A plugin's is checked against the contract."""
    torch.set_num_threads(settings.threads or torch.get_num_threads())
    registration, params = find(settings.model.name), model_params(settings)
    device = _device(settings.device)
    with torch.random.fork_rng():
        torch.manual_seed(derived_seed(settings.seed, "model"))
        model = registration.make(spec, params)
    if registration.origin != "qrl":
        quick_check(settings.model.name, model)
    model = model.to(device)
    if settings.compile == "on":
        model.accelerate_()
    return model, params


def model_params(settings: RunSettings) -> dict[str, Any]:
    """All parameters of the model, as a checkpoint holds them, so that both can be compared."""
    model = settings.model
    params: dict[str, Any] = find(model.name).sized(model.params, model.width, model.latent_size)
    plain: dict[str, Any] = json.loads(json.dumps(params))
    return plain


# What building a model from a damaged or foreign checkpoint raises, and loading its state
MISFITS = (RuntimeError, LookupError, ValueError, TypeError, OverflowError, AttributeError, MemoryError)


def check_shapes(
    registration: Registration, spec: QModelSpec, params: dict[str, Any], weights: dict[str, Tensor]
) -> None:
    """Before a model takes memory, compare the shapes that its parameters imply with those in a checkpoint."""
    with torch.device("meta"):
        try:
            expected = registration.make(spec, params).state_dict()
        except NotImplementedError:  # a plugin that needs real numbers to be built: its own code decides
            return
    for name, tensor in expected.items():
        found = weights.get(name)
        if found is None or (found.shape, found.dtype) != (tensor.shape, tensor.dtype):
            described = "missing" if found is None else f"{found.dtype} of shape {tuple(found.shape)}"
            raise RuntimeError(f"{name} should be {tensor.dtype} of shape {tuple(tensor.shape)}, but is {described}")


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device: {shown(name)} cannot be used here ({clip(str(error).splitlines()[0])})") from None
    return device


def resolve(settings: SettingsT) -> SettingsT:
    """Fully resolved settings; a misspelled model is refused before data is collected."""
    find(settings.model.name)
    compile_ = settings.compile
    if compile_ == "auto":
        compile_ = "on" if has_compiler() else "off"
    data = Path(settings.dataset).stem if settings.dataset is not None else settings.data_name
    run = settings.run or str(Path("runs") / f"{data}__{settings.model.name}__seed{settings.seed}")
    threads = settings.threads or torch.get_num_threads()
    dataset = None if settings.dataset is None else str(Path(settings.dataset).absolute())
    return settings.model_copy(update={"compile": compile_, "dataset": dataset, "run": run, "threads": threads})
