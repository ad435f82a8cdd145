"""The contents of the registry as text: a table of all models, and the parameters of one."""

import torch

from qrl.common.text import plain_table
from qrl.q_models.base import QModel
from qrl.registry import Registration, find, list_q_models
from qrl.spec import QModelSpec

_DOORS = QModelSpec(observation_dim=18, num_actions=4, discount=0.95)  # the one-way-doors world


def count_parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _make(registration: Registration) -> QModel:
    try:
        with torch.device("meta"):  # shapes only: no time and memory for ten million weights
            return registration.make(_DOORS, {})
    except NotImplementedError:  # a plugin that reads the values of its initial weights
        return registration.make(_DOORS, {})


def table_of_models() -> str:
    registrations = [find(name) for name in list_q_models()]
    rows: list[tuple[str, ...]] = [("name", "family", "quasimetric", "goals", "head", "whole", "origin")]
    rows += [_row(registration) for registration in registrations if not registration.legacy]
    note = (
        f"parameters at default sizes for {_DOORS.observation_dim}-dimensional observations and {_DOORS.num_actions} "
        "actions; list-models NAME shows how to change them, and train-agent sets the width of networks by model.width"
    )
    return "\n".join([plain_table(rows), "", *_aliases(registrations), "", note])


def _row(registration: Registration) -> tuple[str, ...]:
    try:
        model = _make(registration)
    except Exception as error:  # one broken plugin must not hide the other models
        return registration.name, registration.family, f"broken: {error}", "", "", "", registration.origin
    head = getattr(model, "head", None)
    return (
        registration.name,
        registration.family,
        "guaranteed" if model.guaranteed_quasimetric else "no",
        model.goal_kind,
        f"{count_parameters(head):,}" if head is not None else "-",
        f"{count_parameters(model):,}",
        registration.origin,
    )


def _aliases(registrations: list[Registration]) -> list[str]:
    """One line per model and set of parameters that legacy aliases fix."""
    aliases: dict[tuple[str, str], list[str]] = {}
    for registration in registrations:
        if registration.alias_of is not None and registration.legacy:
            key = registration.alias_of, " and ".join(registration.fixed)
            aliases.setdefault(key, []).append(registration.name)
    return [f"{model} with fixed {fixed}: {', '.join(names)}" for (model, fixed), names in aliases.items()]


def describe_model(name: str) -> str:
    registration = find(name)
    meaning = (registration.cls.__doc__ or "").strip()
    origin = f"{registration.family}, from {registration.origin}"
    if registration.alias_of is not None:
        fixed = ", ".join(f"{key}={value}" for key, value in registration.fixed.items())
        origin += f", alias of {registration.alias_of} with {fixed}"
    return f"{name} ({origin})\n{meaning}\n\n{registration.parameters.help()}"
