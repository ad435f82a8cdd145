from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from qrl.envs.errors import LayoutError
from qrl.envs.layout import DOORS, Layout, builtin_layouts, load_layout
from tests.layouts import TWO_CELLS, layouts


def test_six_rooms_is_as_documented() -> None:
    layout = load_layout("six-rooms")
    assert (layout.width, layout.height, len(layout.cells), len(layout.doors)) == (19, 19, 241, 10)
    assert len(layout.starts) * len(layout.goals) == 9180


def test_states_are_numbered_row_by_row() -> None:
    layout = Layout("#####\n#S.G#\n#>#.#\n#####")
    assert layout.cells.tolist() == [[1, 1], [2, 1], [3, 1], [1, 2], [3, 2]]
    assert layout.characters.tolist() == ["S", ".", "G", ">", "."]
    assert (layout.starts.tolist(), layout.goals.tolist(), layout.doors.tolist()) == ([0], [2], [3])
    assert layout.headings.tolist() == [-1, -1, -1, 1, -1]


def test_observations_by_hand() -> None:
    layout = Layout("#####\n#S^G#\n#v.<#\n#####")
    table = layout.observations
    assert table.shape == (6, 18)
    assert table.dtype == np.float32
    np.testing.assert_allclose(table[0, :2], [-0.5, -1 / 3], rtol=1e-6)
    np.testing.assert_allclose(table[5, :2], [0.5, 1 / 3], rtol=1e-6)
    # Headings up, down, left as (action + 1) / 4 in the order of the doors, equal for all states.
    assert (table[:, 2:] == np.array([0.25, 0.75, 1.0] + 13 * [0], np.float32)).all()


@given(layouts())
def test_observations_are_distinct(layout: Layout) -> None:
    assert len(np.unique(layout.observations, axis=0)) == len(layout.cells)
    assert np.abs(layout.observations).max() <= 1
    for state, (x, y) in enumerate(layout.cells):
        assert layout.state_ids[y, x] == state


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("####\n#.G#\n####", "no start"),
        ("####\n#S.#\n####", "no goal"),
        ("", "no start"),
        ("####\n#SG#\n###", "row 3 has 3 characters but row 1 has 4"),
        ("####\n#SX#\n####", "unknown character 'X' in row 2, column 3"),
        ("####\n#SGS\n####", "row 2, column 4 lies on the border"),
        ("#G##\n#SG#\n####", "row 1, column 2 lies on the border"),
        ("SG", "lies on the border"),
        ("#" * 21 + "\n#SG" + ">" * 17 + "#\n" + "#" * 21, "17 one-way doors"),
    ],
)
def test_bad_layouts_are_refused(text: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        Layout(text)


def test_a_layout_too_large_for_exact_distances_is_refused() -> None:
    side = 145
    text = "\n".join(["#" * side, "#SG" + "." * (side - 4) + "#", *["#" + "." * (side - 2) + "#"] * side, "#" * side])
    with pytest.raises(LayoutError, match="at most 20,000"):
        Layout(text)


def test_sixteen_doors_fit() -> None:
    layout = Layout("#" * 20 + "\n#SG" + DOORS * 4 + "#\n" + "#" * 20)
    assert (layout.observations[:, 2:] > 0).all()


def test_loading_by_name_path_and_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(TWO_CELLS.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    assert load_layout(path) == load_layout(str(path)) == load_layout(TWO_CELLS) == Layout(TWO_CELLS)
    assert hash(load_layout(path)) == hash(Layout(TWO_CELLS))
    assert load_layout(path).name == str(path)
    assert builtin_layouts() == ["corridor", "six-rooms", "traps"]
    assert load_layout("traps").name == "traps"


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    binary = tmp_path / "picture.png"
    binary.write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(LayoutError, match=r"picture\.png is not UTF-8"):
        load_layout(binary)
    with pytest.raises(LayoutError, match="cannot be read"):
        load_layout(tmp_path)
    with pytest.raises(LayoutError, match="is not a path: it is longer than"):
        load_layout("#" * 300)


def test_a_misspelt_name_is_corrected() -> None:
    with pytest.raises(LayoutError, match=r"unknown layout 'six-room' \(did you mean 'six-rooms'\?\)"):
        load_layout("six-room")


@pytest.mark.parametrize("source", ["six-rooms.txt", "rooms/six-rooms", Path("six-room")])
def test_a_missing_file_is_not_a_misspelt_name(source: str | Path) -> None:
    message = f"^layout file {source} does not exist; built-in layouts: corridor, six-rooms, traps$"
    with pytest.raises(LayoutError, match=message):
        load_layout(source)
