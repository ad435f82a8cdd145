from typing import Any

import pytest

from qrl.common.errors import MAX_MESSAGE, ConfigError
from qrl.common.text import MAX_SHOWN, clip, listed, plain_table, shown


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


@pytest.mark.parametrize("value", [1, -2.5, "text", "it's", None, True, [1, [2, "x"]], {"a": {"b": (1, 2)}}, b"x", {1}])
def test_short_values_are_shown_as_they_are(value: Any) -> None:
    assert shown(value) == repr(value)


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value] * 9
    return value


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, ["x" * 10**6] * 100, 10**5000, [10**5000], {i: i for i in range(10**5)}, _nested(500), b"x" * 10**5],
    ids=lambda value: type(value).__name__,
)
def test_large_values_are_cut(value: Any) -> None:
    assert len(shown(value)) <= MAX_SHOWN + len("...")


def test_what_contains_itself_is_cut() -> None:
    value: list[Any] = []
    value.append(value)
    assert shown(value) == "[[[[...]]]]"


def test_clipped_text_and_lists() -> None:
    assert clip("short") == "short"
    assert clip("x" * 300) == "x" * 200 + "..."
    assert listed(["a", "b"]) == "a; b"
    assert listed(map(str, range(1007))) == "0; 1; 2; 3; 4; and 1,002 more"
    assert listed(["a", "b", "c"], 2, ", ") == "a, b, and 1 more"


def test_no_message_is_longer_than_a_page() -> None:
    assert str(ConfigError("x: wrong")) == "x: wrong"
    assert len(str(ConfigError("x" * 10**6))) == MAX_MESSAGE + len("...")
