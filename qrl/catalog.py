"""What the registry holds, as text: a table of all models, and the parameters of one."""

import torch

from qrl.q_models.base import QModel
from qrl.registry import Registration, find, list_q_models
from qrl.spec import QModelSpec

SPEC = QModelSpec(observation_dim=18, num_actions=4, discount=0.95)  # the one-way-doors world


def count_parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _make(registration: Registration) -> QModel:
    try:
        with torch.device("meta"):  # shapes only: no time and memory for ten million numbers
            return registration.make(SPEC, {})
    except (NotImplementedError, RuntimeError):  # a plugin that looks at its start values
        return registration.make(SPEC, {})


def table_of_models() -> str:
    rows = [("name", "family", "quasimetric", "goals", "head", "whole", "origin")]
    for name in list_q_models():
        registration = find(name)
        try:
            model = _make(registration)
        except Exception as error:  # one broken plugin must not hide the other models
            rows.append((name, registration.family, f"broken: {error}", "", "", "", registration.origin))
            continue
        head = getattr(model, "head", None)
        rows.append(
            (
                name,
                registration.family,
                "guaranteed" if model.guaranteed_quasimetric else "no",
                model.goal_kind,
                f"{count_parameters(head):,}" if head is not None else "-",
                f"{count_parameters(model):,}",
                registration.origin,
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    note = (
        f"parameters at default sizes for {SPEC.observation_dim} observations and {SPEC.num_actions} actions; "
        "list-models NAME shows how to change them, and train-agent makes them as wide as model.width says"
    )
    return "\n".join([*lines, "", note])


def describe_model(name: str) -> str:
    registration = find(name)
    meaning = (registration.cls.__doc__ or "").strip()
    return f"{name} ({registration.family}, from {registration.origin})\n{meaning}\n\n{registration.parameters.help()}"
