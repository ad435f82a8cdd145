"""The look of models: distinct, also to colour-blind readers."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from qrl.agents.evaluation.seeds import SeedGroup
from qrl.agents.evaluation.style import COLORS, FAMILIES, REFERENCE_STYLES, family_of, group_looks, look, looks
from qrl.registry import find, list_q_models

# Linear RGB as readers without red, green or blue cones see it (Machado et al. 2009, full severity).
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(color: str) -> NDArray[np.float64]:
    part = np.array([int(color[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def oklab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """A space in which equal distances look about equally large."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.asarray(lab @ np.cbrt(cones @ np.clip(rgb, 0, 1)))


@pytest.mark.parametrize("vision", VISION)
def test_colours_can_be_told_apart(vision: str) -> None:
    seen = [oklab(np.array(VISION[vision]) @ linear(color)) for color in COLORS]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 0.1  # Okabe and Ito's: 0.076


def test_coloured_text_is_legible_on_white() -> None:
    for color in COLORS:
        assert 1.05 / (linear(color) @ [0.2126, 0.7152, 0.0722] + 0.05) > 3  # what WCAG asks of graphics


def test_every_model_family_has_a_colour_and_a_marker_of_its_own() -> None:
    families = {find(name).family for name in list_q_models()}
    assert families == set(FAMILIES)
    pairs = {(look(number).color, look(number).marker) for number in range(16)}
    assert len(pairs) == 16  # those of the registry, and as many of plugins
    own = [look(number) for number in range(len(FAMILIES))]
    assert len({one.color for one in own}) == len({one.marker for one in own}) == len(FAMILIES)


def test_every_model_has_a_look_of_its_own() -> None:
    names = list(list_q_models())
    styles = looks({name: name for name in names})
    assert len(set(styles.values())) == len(names)
    for name in names:
        assert (styles[name].color == styles["iqe-maxmean"].color) == (find(name).family == "IQE")


def test_a_variant_looks_the_same_in_every_figure() -> None:
    alone = looks({"mrn": "mrn"})["mrn"]
    assert looks({"mrn": "mrn", "mrn-fixed": "mrn-fixed"})["mrn"] == alone
    assert looks({"tuned": "mrn", "mrn": "mrn"})["mrn"] == alone  # though the other comes first
    assert looks({"iqe-mean": "iqe"}) == {"iqe-mean": look(0, 2)}


def test_a_model_whose_plugin_is_absent_is_a_family_of_its_own() -> None:
    assert family_of("nobody-has-this") == "nobody-has-this"
    assert looks({"nobody-has-this": "nobody-has-this"}) == {"nobody-has-this": look(len(FAMILIES))}


def test_many_variants_are_all_different() -> None:
    assert len({look(0, variant) for variant in range(30)}) == 30


def test_runs_that_differ_by_seed_share_a_colour() -> None:
    first, other, second = group_looks([SeedGroup("", [0, 2]), SeedGroup("", [1])])
    assert first.color == second.color != other.color
    assert first.line != second.line


def test_references_have_no_hue() -> None:
    for style in REFERENCE_STYLES.values():
        assert style["color"] == "black" or 0 < float(style["color"]) < 1
