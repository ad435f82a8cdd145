"""The contents of the registry of learners as text: a table of all, and the objective and keys of one."""

from qrl.agents.learners.registry import LearnerRegistration, find_learner, list_learners
from qrl.agents.learners.settings import COMMANDS
from qrl.common.text import plain_table


def table_of_learners() -> str:
    registrations = [find_learner(name) for name in list_learners()]
    rows = [("name", "objective", "models", "learns", "command", "origin"), *map(_row, registrations)]
    return f"{plain_table(rows)}\n\nlist-learners NAME shows the objective and the keys of one"


def _row(registration: LearnerRegistration) -> tuple[str, ...]:
    cls = registration.cls
    models = "quasimetrics" if cls.NEEDS_QUASIMETRIC else "all" if "state" in cls.GOAL_KINDS else "state-action goals"
    title = (registration.meaning.splitlines() or [""])[0].partition(":")[0].rstrip(".")
    settings = registration.settings
    return registration.name, title, models, settings.LEARNS, COMMANDS[settings.DATA], registration.origin


def describe_learner(name: str) -> str:
    registration = find_learner(name)
    keys = "\n".join(f"  learner.{line.strip()}" for line in registration.settings.help().splitlines())
    command = COMMANDS[registration.settings.DATA]
    return (
        f"{name} (from {registration.origin})\n{registration.meaning}\n\n"
        f"keys, for {command} learner.name={name}:\n{keys}"
    )
