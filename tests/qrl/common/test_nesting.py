"""Dotted keys and nested mappings."""

from qrl.common.nesting import nest


def test_dotted_and_nested_keys_are_the_same() -> None:
    assert nest({"a.b": 1, "a": {"c.d": 2}, "e": 3}) == {"a": {"b": 1, "c": {"d": 2}}, "e": 3}
