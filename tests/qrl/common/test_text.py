import pytest

from qrl.common.text import plain_table


def test_columns_are_aligned() -> None:
    rows = [("name", "steps", ""), ("a", "1,000", "x"), ("longest", "7", "")]
    assert plain_table(rows).splitlines() == [
        "name     steps",
        "-------  -----  -",
        "a        1,000  x",
        "longest  7",
    ]


def test_rows_must_have_the_same_cells() -> None:
    with pytest.raises(ValueError, match="zip"):
        plain_table([("name", "steps"), ("a",)])
