"""Which families share a panel of a study's figure: few enough that their intervals stay apart."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from qrl.agents.evaluation.style import Look, family_of, looks
from qrl.agents.studies.settings import Family, StudySettings
from qrl.common.figures import grid_shape

MAX_LINES = 4
# Two families with the same model and other values of these are variants of the model, not different objectives.
_RATES = {"learner.lr", "learner.triangle"}


@dataclass(frozen=True)
class Panel:
    title: str
    world: str
    looks: dict[str, Look]  # by family


def panels(settings: StudySettings) -> list[list[Panel | None]]:
    """The grid of panels, row by row.

    A section is a world, or a learner where the study compares learners. Sections with few families have a panel
    each. Otherwise a section is a column, with a panel per group of model families, so that rows compare the sections.
    """
    sections = [
        [Panel(_title(world, learner, names), world, members) for names, members in _groups(families)]
        for world in settings.worlds or [""]
        for learner, families in _objectives(settings).items()
    ]
    if len(sections) > 1 and max(map(len, sections)) > 1:
        height = max(map(len, sections))
        return [[section[row] if row < len(section) else None for section in sections] for row in range(height)]
    flat = [panel for section in sections for panel in section]
    rows, columns = grid_shape(len(flat))
    padded = [*flat, *[None] * (rows * columns - len(flat))]
    return [padded[row * columns : (row + 1) * columns] for row in range(rows)]


def _title(world: str, learner: str, names: str) -> str:
    return ": ".join(filter(None, (", ".join(filter(None, (world, learner))), names)))


def _objectives(settings: StudySettings) -> dict[str, dict[str, str]]:
    """The models of the families by learner, where the same model is trained in several ways; else all under ""."""
    models = {name: family.model or name for name, family in settings.families.items()}
    ways = defaultdict(set)
    for name, family in settings.families.items():
        ways[models[name]].add(_way(family))
    if max(map(len, ways.values())) < 2:
        return {"": models}
    objectives: dict[str, dict[str, str]] = {}
    for name, model in models.items():  # such families are called learner-model
        objectives.setdefault(name.partition("-")[0], {})[name] = model
    return objectives


def _way(family: Family) -> str:
    """The learner's settings that make an objective, as a key."""
    flat: dict[str, Any] = {}
    for key, value in family.settings.items():
        flat |= {f"{key}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {key: value}
    return repr(sorted((k, v) for k, v in flat.items() if k.startswith("learner.") and k not in _RATES))


def _groups(models: dict[str, str]) -> list[tuple[str, dict[str, Look]]]:
    """Neighbouring model families are put together up to `MAX_LINES`; a larger one is split."""
    appearance = looks(models)
    by_family: dict[str, list[str]] = {}
    for name, model in models.items():
        by_family.setdefault(family_of(model), []).append(name)
    if len(models) <= MAX_LINES:
        return [("", appearance)]
    groups: list[tuple[list[str], list[str]]] = []  # titles and members
    for family, names in by_family.items():
        parts = -(-len(names) // MAX_LINES)
        for part in range(parts):
            members = names[part * len(names) // parts : (part + 1) * len(names) // parts]
            title = family if parts == 1 else f"{family} ({part + 1} of {parts})"
            if groups and len(groups[-1][1]) + len(members) <= MAX_LINES:
                groups[-1][0].append(title)
                groups[-1][1].extend(members)
            else:
                groups.append(([title], members))
    return [(", ".join(titles), {name: appearance[name] for name in members}) for titles, members in groups]
