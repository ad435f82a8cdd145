"""Layouts for tests: the built-in ones, a small one, and a hypothesis strategy."""

from hypothesis import assume
from hypothesis import strategies as st

from qrl.envs.layout import DOOR_SLOTS, DOORS, Layout, builtin_layouts, load_layout

BUILTIN = [load_layout(name) for name in builtin_layouts()]

TWO_CELLS = "####\n#SG#\n####"


@st.composite
def layouts(draw: st.DrawFn, max_side: int = 6) -> Layout:
    """Valid layouts with walls, floor, doors, starts and goals anywhere inside the border."""
    width, height = draw(st.integers(1, max_side)), draw(st.integers(1, max_side))
    assume(width * height >= 2)
    cell = st.sampled_from("###....SSGG" + DOORS)
    cells = draw(st.lists(cell, min_size=width * height, max_size=width * height))
    start, goal = draw(st.permutations(range(width * height)))[:2]
    cells[start], cells[goal] = "S", "G"
    doors = 0
    for index, character in enumerate(cells):
        doors += character in DOORS
        if doors > DOOR_SLOTS:
            cells[index] = "."
    rows = ["".join(cells[width * y : width * (y + 1)]) for y in range(height)]
    border = "#" * (width + 2)
    return Layout("\n".join([border, *(f"#{row}#" for row in rows), border]), "random")
