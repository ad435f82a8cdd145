"""The look of models in figures: a colour and a marker per model family, line style and fill per variant.

Hues belong to learned models. References are black and grey, so that they are never taken for one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from qrl.agents.evaluation.seeds import SeedGroup
from qrl.common.errors import UserError
from qrl.registry import find

# The families of the registry with the variants that are usually compared, each in its usual order: a variant looks the
# same in every figure. Families of plugins come after these.
FAMILIES: dict[str, tuple[str, ...]] = {
    "IQE": ("iqe-maxmean", "iqe-sum", "iqe-mean", "iqe-max", "iqe"),
    "MRN": ("mrn-fixed", "mrn"),
    "Deep Norm": ("deep-norm-fixed", "deep-norm"),
    "PQE": ("pqe-lh", "pqe-gg"),
    "Wide Norm": ("wide-norm",),
    "metric": ("metric-mixture", "euclidean", "l1", "spherical"),
    "unconstrained": ("unconstrained", "unconstrained-triangle", "unconstrained-state"),
    "dot product": ("dot", "dot-triangle"),
}
# Distinct to colour-blind readers, too, and dark enough on white for text.
COLORS = ("#1b0acd", "#d48204", "#e90767", "#00a3b5", "#820083", "#5f6800", "#5a1500", "#a169ff")
MARKERS = "oDs^v*Pp<>Xhd8H"
_DASHES = ((4, 1.5), (1, 1.2), (5, 1.5, 1, 1.5), (5, 1, 1, 1, 1, 1), (1, 3))
_LINES: tuple[Any, ...] = ("-", *((0, dashes) for dashes in _DASHES))
_FILLS = ("full", "none", "left", "bottom", "right", "top")

REFERENCE_STYLES: dict[str, dict[str, Any]] = {
    "oracle": {"lw": 1.2, "ls": ":", "color": "black"},
    "random": {"lw": 1.2, "ls": (0, (6, 3)), "color": "0.5"},
    "empirical-graph": {"lw": 1.6, "ls": (0, (5, 1.5, 1, 1.5)), "color": "0.25"},
}


@dataclass(frozen=True)
class Look:
    color: str
    marker: str
    line: Any
    fill: str

    @property
    def style(self) -> dict[str, Any]:
        """For `Axes.plot`; the empty part of a marker is white, so that no line crosses it."""
        style: dict[str, Any] = {"color": self.color, "marker": self.marker, "ls": self.line, "fillstyle": self.fill}
        style |= {"markerfacecoloralt": "white", "ms": 5.5, "lw": 1.6}
        return style | ({"fillstyle": "full", "mfc": "white"} if self.fill == "none" else {})


def look(family: int, variant: int = 0) -> Look:
    """By number. Colours recur after eight families, with other markers; fills recur after six variants, shifted."""
    shift = variant // len(_LINES)
    return Look(
        COLORS[family % len(COLORS)],
        MARKERS[family % len(MARKERS)],
        _LINES[variant % len(_LINES)],
        _FILLS[(variant + shift) % len(_FILLS)],
    )


def looks(models: Mapping[str, str]) -> dict[str, Look]:
    """A look per name of a line, all different; `models`: the registered model of each."""
    families = {name: family_of(model) for name, model in models.items()}
    order = list(dict.fromkeys([*FAMILIES, *families.values()]))
    taken: dict[tuple[str, int], str] = {}
    for name in sorted(models, key=lambda name: name not in FAMILIES.get(families[name], ())):  # own places first
        family = families[name]
        usual = FAMILIES.get(family, ())
        places = chain((usual.index(known) for known in (name, models[name]) if known in usual), count())
        taken[next((family, place) for place in places if (family, place) not in taken)] = name
    numbers = {name: place for place, name in taken.items()}
    return {name: look(order.index(numbers[name][0]), numbers[name][1]) for name in models}


def group_looks(groups: Sequence[SeedGroup]) -> list[Look]:
    """A look per run, in their order: those of a group, which differ only by seed, share colour and marker."""
    members = {
        member: look(number, place) for number, group in enumerate(groups) for place, member in enumerate(group.members)
    }
    return [members[member] for member in sorted(members)]


def family_of(model: str) -> str:
    """The family of a registered model; a model whose plugin is not loaded is a family of its own."""
    try:
        return find(model).family
    except UserError:
        return model
